package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Ensure that a cluster ships its backup as the spec says, that a restore makes another cluster of it, and that neither touches the
// other.
func TestOperator_restore(t *testing.T) {
	s := begin(t)
	s.c.Spec.Claims = []string{"backups"} // the processes here reach the directory without it
	s.c.Spec.Backup = &v1alpha1.Backup{Place: "file://" + t.TempDir()}
	must(t, s.api.Create(t.Context(), s.c))
	s.until("created", time.Minute, s.settled(3))
	s.connect()
	writing, stop := context.WithTimeout(t.Context(), 2*time.Second)
	s.write(writing)
	stop()
	written := int64(len(s.load.acked))
	s.until("shipped", time.Minute, func(*v1alpha1.QuorateCluster) bool {
		b := &v1alpha1.QuorateBackup{}
		return s.api.Get(t.Context(), client.ObjectKeyFromObject(s.c), b) == nil && b.Status.On && b.Status.RestorableRevision > written
	})
	r := &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: s.c.Namespace}}
	r.Spec = v1alpha1.QuorateRestoreSpec{ClusterName: "past", Like: s.c.Name,
		From: v1alpha1.RestoreFrom{Place: s.c.Spec.Backup.Place, At: "latest"}}
	must(t, s.api.Create(t.Context(), r))
	began := time.Now()
	former := s.load.acked
	s.c = &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "past", Namespace: s.c.Namespace}}
	s.until("restored", 2*time.Minute, func(c *v1alpha1.QuorateCluster) bool { return c.Status.HealthyMembers == 3 && c.Status.Action == "" })
	t.Logf("three members with the past state after %v", time.Since(began))
	s.connect()
	s.load.acked = former
	if missing := s.lost(); len(missing) > 0 {
		t.Errorf("%d of %d writes are not in the restored cluster", len(missing), len(former))
	}
	s.until("done", 20*time.Second, func(*v1alpha1.QuorateCluster) bool {
		must(t, s.api.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		return r.Status.State == "Done"
	})
	var pods corev1.PodList
	must(t, s.api.List(t.Context(), &pods))
	for i := range pods.Items {
		if len(pods.Items[i].Spec.InitContainers) > 0 {
			t.Errorf("%s restores again at its next start", pods.Items[i].Name)
		}
	}
	again := &v1alpha1.QuorateRestore{ObjectMeta: metav1.ObjectMeta{Name: "again", Namespace: s.c.Namespace}, Spec: r.Spec}
	again.Spec.ClusterName = "kv"
	must(t, s.api.Create(t.Context(), again))
	s.until("refused", 20*time.Second, func(*v1alpha1.QuorateCluster) bool {
		must(t, s.api.Get(t.Context(), client.ObjectKeyFromObject(again), again))
		return again.Status.State == "Failed"
	})
}
