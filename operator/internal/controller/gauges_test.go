package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that a scrape tells the conditions of each cluster, and nothing of one that was deleted.
func TestGauges_Collect(t *testing.T) {
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	kv := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "kv"}}
	kv.Spec.Members, kv.Status.HealthyMembers = 3, 2
	kv.Status.Conditions = []metav1.Condition{{Type: controller.Available, Status: metav1.ConditionTrue},
		{Type: controller.Healthy, Status: metav1.ConditionFalse}, {Type: "DISK_FULL", Status: metav1.ConditionTrue}}
	fresh := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "fresh"}}
	fresh.Spec.Members = 5
	api := fake.NewClientBuilder().WithScheme(known).WithObjects(kv, fresh).Build()
	gauges := &controller.Gauges{Clusters: api}
	want := []string{"quorate_operator_cluster_condition Available kv prod = 1", "quorate_operator_cluster_condition DISK_FULL kv prod = 1",
		"quorate_operator_cluster_condition Healthy kv prod = 0", "quorate_operator_cluster_members_healthy kv prod = 2",
		"quorate_operator_cluster_members_wanted fresh prod = 5", "quorate_operator_cluster_members_wanted kv prod = 3"}
	if got := gathered(t, gauges); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := api.Delete(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	if got := gathered(t, gauges); !slices.Equal(got, want[4:5]) {
		t.Errorf("after a cluster was deleted: got %q, want %q", got, want[4:5])
	}
}

// gathered are the values of a scrape, a line each: name, labels, value.
func gathered(t *testing.T, from prometheus.Collector) (all []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(from)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			line := family.GetName()
			for _, label := range one.GetLabel() {
				line += " " + label.GetValue()
			}
			all = append(all, fmt.Sprintf("%s = %g", line, one.GetGauge().GetValue()))
		}
	}
	return all
}

// Ensure that a cluster that stops serving makes one warning, another one if the reason is another, and that its return is told.
func TestReconcile_availableEvents(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	recorder := events.NewFakeRecorder(1000)
	f.r.Events = recorder
	said := func() (all []string) {
		for len(recorder.Events) > 0 {
			if event := <-recorder.Events; strings.Contains(event, "no leader answers") || strings.Contains(event, "a leader answers") ||
				strings.Contains(event, "best survivor") {
				words := strings.Fields(event)
				all = append(all, words[0]+" "+words[1])
			}
		}
		return all
	}
	f.found()
	f.must(f.step(1))
	if got := said(); !slices.Equal(got, []string{"Normal Leads"}) {
		t.Errorf("founded: got %q", got)
	}
	described, names := f.group.described, []string{f.pods()[0].Name, f.pods()[1].Name, f.pods()[2].Name}
	f.group.described = nil
	f.must(f.step(3))
	if got := said(); !slices.Equal(got, []string{"Warning NoLeader"}) {
		t.Errorf("no leader: got %q", got)
	}
	f.group.answers = []decide.Answer{{Member: names[0], Index: 9, Revision: 5, Voters: names, Members: names}}
	for _, name := range names[1:] {
		f.must(f.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}))
		f.must(f.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}))
	}
	f.must(f.step(3))
	if got := said(); !slices.Equal(got, []string{"Warning QuorumLost"}) {
		t.Errorf("a majority lost: got %q", got)
	}
	f.group.described = described
	f.must(f.step(2))
	if got := said(); !slices.Equal(got, []string{"Normal Leads"}) {
		t.Errorf("a leader again: got %q", got)
	}
}
