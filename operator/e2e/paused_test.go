package e2e

import (
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
)

// pause: a pod that is deleted stays away for as long as the cluster is paused.
func (s *stage) pause() {
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Paused = true })
	s.until("paused", 20*time.Second, func(c *v1alpha1.QuorateCluster) bool {
		at := meta.FindStatusCondition(c.Status.Conditions, controller.Paused)
		return at != nil && at.ObservedGeneration == c.Generation
	})
	pod := s.member(false)
	must(s.T, s.api.Delete(s.Context(), pod))
	s.until("paused without a step", 20*time.Second, func(c *v1alpha1.QuorateCluster) bool {
		return strings.Contains(c.Status.Action, "The next step would be CreatePod "+pod.Name)
	})
	s.until("counted", 20*time.Second, func(c *v1alpha1.QuorateCluster) bool { return c.Status.HealthyMembers == 2 })
	if err := s.api.Get(s.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}); err == nil {
		s.Errorf("%s was made in a paused cluster", pod.Name)
	}
	s.change(func(spec *v1alpha1.QuorateClusterSpec) { spec.Paused = false })
	s.until("back", time.Minute, s.settled(3))
}

// Ensure that the API server gives the operator the events of a pod that does not say itself why it does not start, and prints what the
// status has.
func TestOperator_why(t *testing.T) {
	cfg, api, _ := control(t)
	expandable(t, api)
	s := &stage{T: t, ground: newGround(t, api, ""), cfg: cfg} // no node takes the pods
	s.stopOp = operator(t, cfg, api.Scheme(), true)
	s.c = &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "default"}}
	s.c.Spec.Storage.ClassName, s.c.Spec.Version = "local", "one"
	must(t, api.Create(t.Context(), s.c))
	var pods corev1.PodList
	s.until("with pods", time.Minute, func(*v1alpha1.QuorateCluster) bool {
		must(t, api.List(t.Context(), &pods))
		return len(pods.Items) == 3
	})
	for i, text := range []string{"not this", `secret "mine" not found`} {
		of := corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: pods.Items[i].Name, UID: pods.Items[0].UID}
		if i == 0 {
			of.UID = "another"
		}
		must(t, api.Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "e", Namespace: "default"},
			InvolvedObject: of, Type: corev1.EventTypeWarning, Reason: "FailedMount", Message: text, LastTimestamp: metav1.Now()}))
	}
	s.until("said why", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		return strings.HasSuffix(c.Status.Action, pods.Items[0].Name+`: FailedMount: secret "mine" not found`)
	})
	s.stopOp()
	c := s.get()
	c.Status.Leader, c.Status.HealthyMembers = "kv-1", 2
	must(t, api.Status().Update(t.Context(), c))
	got := s.printed()
	for name, want := range map[string]string{"Members": "3", "Working": "2", "Available": "False", "Healthy": "False",
		"Version": "one", "Leader": "kv-1", "Endpoint": c.Status.Endpoint, "Doing": c.Status.Action} {
		if got[name] != want {
			t.Errorf("the column %s has %q, want %q", name, got[name], want)
		}
	}
}

// printed is what `kubectl get -o wide` shows of the cluster, by column.
func (s *stage) printed() map[string]string {
	s.Helper()
	http, err := rest.HTTPClientFor(s.cfg)
	must(s.T, err)
	asked, err := nethttp.NewRequestWithContext(s.Context(), nethttp.MethodGet,
		strings.TrimSuffix(s.cfg.Host, "/")+"/apis/quorate.io/v1alpha1/namespaces/default/quorateclusters/"+s.c.Name, nil)
	must(s.T, err)
	asked.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := http.Do(asked)
	must(s.T, err)
	defer func() { _ = answer.Body.Close() }()
	var table metav1.Table
	must(s.T, json.NewDecoder(answer.Body).Decode(&table))
	if len(table.Rows) != 1 {
		s.Fatalf("%s: %+v", answer.Status, table)
	}
	out := map[string]string{}
	for i, cell := range table.Rows[0].Cells {
		out[table.ColumnDefinitions[i].Name] = fmt.Sprint(cell)
	}
	return out
}
