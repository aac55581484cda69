package e2e

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
)

// waits lets time pass until something is so, which is asked ten times a second.
func waits(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return is(), nil
	}); err != nil {
		t.Fatalf("not %s", what)
	}
}

// Ensure that an object which Go cannot decode, of a time before the CRD refused it, keeps the operator from no other cluster: neither one
// that starts, nor one that runs. Gauges leave it out or tell it.
func TestOperator_undecodable(t *testing.T) {
	cfg, api, _ := control(t)
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	pattern := func(text string) {
		t.Helper()
		must(t, api.Get(t.Context(), client.ObjectKey{Name: "quorateclusters.quorate.io"}, crd))
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		must(t, err)
		must(t, unstructured.SetNestedField(versions[0].(map[string]any), text, "schema", "openAPIV3Schema", "properties", "spec", "properties",
			"resources", "properties", "limits", "additionalProperties", "pattern"))
		must(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		must(t, api.Update(t.Context(), crd))
	}
	bad := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resources": map[string]any{
			"limits": map[string]any{"memory": "1e1.5"}}}}}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("QuorateCluster"))
		u.SetName(name)
		u.SetNamespace("default")
		return u
	}
	good := func(name string) {
		t.Helper()
		c := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		must(t, api.Create(t.Context(), c))
		waits(t, name+" founded", func() bool {
			var pods corev1.PodList
			must(t, api.List(t.Context(), &pods, client.MatchingLabels{"quorate.io/cluster": name}))
			return len(pods.Items) > 0
		})
	}
	told := func(u *unstructured.Unstructured) {
		t.Helper()
		waits(t, u.GetName()+" told", func() bool {
			must(t, api.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			text, _, _ := unstructured.NestedString(u.Object, "status", "action")
			return strings.Contains(text, `spec.resources.limits.memory is "1e1.5", which is no amount`)
		})
	}
	pattern(`^[0-9e.]*$`)
	first, second := bad("first"), bad("second")
	waits(t, "taken by the former CRD", func() bool { return api.Create(t.Context(), first) == nil })
	stop := operator(t, cfg, api.Scheme(), false)
	defer stop()
	told(first)
	good("kv")
	must(t, api.Create(t.Context(), second))
	told(second)
	good("other")
	pattern(v1alpha1.QuantityPattern)
	waits(t, "refused by the CRD", func() bool { return api.Create(t.Context(), bad("third"), client.DryRunAll) != nil })
	good("third")
}

// Ensure that pods of others take nothing of the operator's memory, and those with its labels little.
func TestOperator_cache(t *testing.T) {
	cfg, api, _ := control(t)
	long := strings.Repeat("x", 200<<10)
	var all sync.WaitGroup
	room := make(chan struct{}, 8)
	for i := range 300 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: "default", Labels: map[string]string{},
			Annotations: map[string]string{"long": long}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if i%2 == 0 {
			pod.Labels["app.kubernetes.io/managed-by"] = "quorate-operator"
		}
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if err := api.Create(t.Context(), pod); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: api.Scheme(), Metrics: server.Options{BindAddress: "0"}, Cache: controller.Cache()})
	must(t, err)
	kept := &metav1.PartialObjectMetadataList{}
	kept.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	go func() { _ = mgr.Start(t.Context()) }()
	waits(t, "in the cache", func() bool { return mgr.GetCache().List(t.Context(), kept) == nil })
	if grown := heap() - before; grown > 10<<20 || len(kept.Items) != 150 {
		t.Errorf("%d of 300 pods are kept, and %d KiB", len(kept.Items), grown>>10)
	} else {
		t.Logf("%d pods are kept, and %d KiB", len(kept.Items), grown>>10)
	}
	runtime.KeepAlive(mgr)
}
