package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/controller"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/members"
)

// Ensure that a cluster whose object cannot be decoded, or takes for ever, is told so, once, and that nothing else is done about it.
func TestReconcile_unread(t *testing.T) {
	var put func(o map[string]any) error
	var wrote, unknown []string
	f := start(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
		opts ...client.GetOption) error {
		err := c.Get(ctx, key, o, opts...)
		if u, ok := o.(*unstructured.Unstructured); ok && err == nil {
			return put(u.Object)
		}
		return err
	}, SubResourceUpdate: func(ctx context.Context, c client.Client, kind string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return c.SubResource(kind).Update(ctx, o, opts...)
		}
		text, _, _ := unstructured.NestedString(u.Object, "status", "action")
		wrote = append(wrote, text)
		conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, one := range conditions {
			said := one.(map[string]any)
			if said["status"] == "Unknown" && said["reason"] == "Unreadable" && said["message"] == text {
				unknown = append(unknown, said["type"].(string))
			}
		}
		return err
	}}, nil)
	recorder := events.NewFakeRecorder(10)
	f.r.Events = recorder
	set := func(value any, path ...string) func(map[string]any) error {
		return func(o map[string]any) error { return unstructured.SetNestedField(o, value, path...) }
	}
	for _, row := range []struct {
		put  func(map[string]any) error
		want string
	}{
		{set("1e1.5", "spec", "resources", "limits", "memory"), "spec.resources.limits.memory is \"1e1.5\""},
		{set("1234567890123456789e400000000", "spec", "storage", "size"), "spec.storage.size is"},
		{set([]any{map[string]any{"name": "a", "valueFrom": map[string]any{"resourceFieldRef": map[string]any{"divisor": "1e+.5"}}}}, "spec", "env"),
			"spec.env[0].valueFrom.resourceFieldRef.divisor"},
		{set(1e30, "spec", "recovery", "acceptLossAfter"), "acceptLossAfter"},
		{set("never", "status", "recovery", "done"), "done"},
		{set(strings.Repeat("x", 300<<10), "spec", "podSecurityContext", "fsGroupChangePolicy"), "at most 256 are read"},
	} {
		put, wrote, unknown = row.put, nil, nil
		f.must(f.step(1))
		if len(wrote) != 1 || !strings.HasPrefix(wrote[0], "nothing is done: the QuorateCluster kv is not read: ") ||
			!strings.Contains(wrote[0], row.want) {
			t.Fatalf("%s: the status says %q", row.want, wrote)
		}
		if !slices.Equal(unknown, []string{"Available", "Healthy", "Progressing"}) {
			t.Errorf("%s: these conditions are unknown: %v", row.want, unknown)
		}
		if event := <-recorder.Events; !strings.Contains(event, "Unreadable") || !strings.Contains(event, row.want) {
			t.Errorf("%s: the event is %q", row.want, event)
		}
		told := wrote[0]
		put = func(o map[string]any) error {
			return errors.Join(row.put(o), unstructured.SetNestedField(o, told, "status", "action"))
		}
		f.must(f.step(1))
		if len(wrote) != 1 || len(recorder.Events) > 0 {
			t.Errorf("%s: it is told again: %q", row.want, wrote)
		}
	}
	if pods := f.pods(); len(pods) > 0 {
		t.Errorf("%d pods", len(pods))
	}
	restore := &controller.Restores{Client: f.Client, Read: f.Client}
	q := &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns"}, Spec: v1alpha1.QuorateRestoreSpec{
		ClusterName: "past", Like: "kv", From: v1alpha1.RestoreFrom{Place: "s3://b/p"}}}
	f.must(f.Create(t.Context(), q))
	_, err := restore.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(q)})
	f.must(err)
	if f.must(f.Get(t.Context(), client.ObjectKeyFromObject(q), q)); q.Status.State != "Waiting" ||
		!strings.Contains(q.Status.Message, "the QuorateCluster kv is not read") {
		t.Errorf("a restore like it: %+v", q.Status)
	}
}

// Ensure that members of one namespace that hang use its own share of the workers.
func TestReconcile_share(t *testing.T) {
	let, begun := make(chan struct{}), make(chan struct{}, 100)
	f := start(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
		opts ...client.GetOption) error {
		if _, first := o.(*corev1.Service); first && key.Namespace == "hangs" {
			begun <- struct{}{}
			<-let
		}
		return c.Get(ctx, key, o, opts...)
	}}, nil)
	one := func(i int) ctrl.Result {
		c := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "hangs", Name: fmt.Sprint("kv", i), UID: types.UID(fmt.Sprint(i))}}
		c.Spec.Members, c.Spec.Image, c.Spec.TLS.Mode = 1, "quorate", "None"
		if err := f.Create(t.Context(), c); err != nil {
			t.Error(err)
		}
		got, err := f.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		if err != nil {
			t.Error(err)
		}
		return got
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { one(i) })
		<-begun
	}
	if got := one(8); got.RequeueAfter <= 0 || got.RequeueAfter > time.Second {
		t.Errorf("the ninth waits for %v", got.RequeueAfter)
	}
	f.must(f.step(8))
	if len(f.pods()) == 0 {
		t.Error("a cluster of another namespace makes no step")
	}
	close(let)
	all.Wait()
	if one(9); len(begun) == 0 {
		t.Error("the share is used for ever")
	}
}

// late is a cluster whose members take their time.
type late struct {
	*group
	f *fixture
}

func (l *late) Look(ctx context.Context, cluster uint64, newest decide.Epoch) *members.View {
	l.f.now = l.f.now.Add(12 * time.Second)
	return l.group.Look(ctx, cluster, newest)
}

// Ensure that a cluster whose members hang is looked at again only after as long as the look took, unless it does something.
func TestReconcile_late(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	f.found()
	f.r.Open = func([]members.Seat, members.Access) (controller.Cluster, error) { return &late{f.group, f}, nil }
	got, err := f.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: f.key})
	if f.must(err); got.RequeueAfter != 12*time.Second {
		t.Errorf("after a look of 12 s it waits for %v", got.RequeueAfter)
	}
	pod := f.pods()[0]
	f.must(f.Delete(t.Context(), &pod))
	got, err = f.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: f.key})
	if f.must(err); got.RequeueAfter >= 3*time.Second {
		t.Errorf("after an action it waits for %v", got.RequeueAfter)
	}
}

// Ensure that a restore which waits for a cluster does so the more seldom the longer it has.
func TestRestores_waits(t *testing.T) {
	f := start(t, interceptor.Funcs{}, nil)
	for name, want := range map[time.Duration]time.Duration{time.Second: 5 * time.Second, 4 * time.Minute: time.Minute, time.Hour: 5 * time.Minute} {
		q := &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: name.String(), Namespace: "ns",
			CreationTimestamp: metav1.NewTime(time.Now().Add(-name))}, Spec: v1alpha1.QuorateRestoreSpec{ClusterName: "past", Like: "nope"}}
		f.must(f.Create(t.Context(), q))
		got, err := (&controller.Restores{Client: f.Client, Read: f.Client}).Reconcile(t.Context(),
			ctrl.Request{NamespacedName: client.ObjectKeyFromObject(q)})
		if f.must(err); (got.RequeueAfter - want).Abs() > 2*time.Second {
			t.Errorf("after %v it waits for %v, want %v", name, got.RequeueAfter, want)
		}
	}
}

// Ensure that lists are read by pages, and have a bound: labels are anybody's.
func TestReconcile_lists(t *testing.T) {
	extra, size, pages := 0, 0, 0
	f := start(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
		asked := (&client.ListOptions{}).ApplyOptions(opts)
		claims, ok := into.(*corev1.PersistentVolumeClaimList)
		if !ok {
			return c.List(ctx, into, opts...)
		}
		if pages++; asked.Limit == 0 || asked.Limit > 20 {
			t.Errorf("a page has %d", asked.Limit)
		}
		begun := 0
		if asked.Continue == "" {
			if err := c.List(ctx, into, opts...); err != nil {
				return err
			}
		} else if _, err := fmt.Sscan(asked.Continue, &begun); err != nil {
			t.Fatal(err)
		}
		for i := begun; i < min(extra, begun+int(asked.Limit)); i++ {
			claims.Items = append(claims.Items, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("x", i),
				Namespace: "ns", Annotations: map[string]string{"other": strings.Repeat("x", 100<<10),
					"quorate.io/serial": "1", "quorate.io/zone": strings.Repeat("x", size)}}})
		}
		if begun += int(asked.Limit); begun < extra {
			claims.Continue = fmt.Sprint(begun)
		}
		return nil
	}}, nil)
	if err := f.step(8); err != nil || pages == 0 {
		t.Fatal(err, pages)
	}
	for _, row := range []struct {
		extra, size int
		refused     bool
	}{{400, 10, false}, {600, 10, true}, {100, 30 << 10, true}} {
		extra, size = row.extra, row.size
		err := f.step(1)
		if refused := err != nil && strings.Contains(err.Error(), "have the cluster's labels"); refused != row.refused {
			t.Errorf("%d claims with %d bytes: %v", extra, size, err)
		}
	}
}
