package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Ensure that a member whose disk was wiped founds nothing and is replaced by another one, since the cluster refuses its data: the
// claim is there, and tells nothing.
func TestOperator_wiped(t *testing.T) {
	s := begin(t)
	must(t, s.api.Create(t.Context(), s.c))
	s.until("created", time.Minute, s.settled(3))
	id := s.get().Status.ClusterID
	pod := s.member(true)
	claim := &corev1.PersistentVolumeClaim{}
	must(t, s.api.Get(t.Context(), client.ObjectKeyFromObject(pod), claim))
	s.stop(string(pod.UID), syscall.SIGKILL)
	must(t, os.RemoveAll(filepath.Join(s.dir, string(claim.UID))))
	s.until("replaced", 2*time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		return s.settled(3)(c) && !strings.Contains(fmt.Sprint(c.Status.Members), pod.Name)
	})
	if c := s.get(); c.Status.ClusterID != id || len(c.Status.Dropped) > 0 {
		t.Errorf("cluster %s became %s", id, c.Status.ClusterID)
	}
}

// wipe removes the status, and waits until the operator has read what it needs from the cluster and its claims.
func (s *stage) wipe() {
	s.Helper()
	before := s.get()
	s.until("without a status", 10*time.Second, func(c *v1alpha1.QuorateCluster) bool {
		c.Status = v1alpha1.QuorateClusterStatus{}
		return s.api.Status().Update(s.Context(), c) == nil
	})
	s.until("known again", time.Minute, func(c *v1alpha1.QuorateCluster) bool {
		return c.Status.ClusterID == before.Status.ClusterID && s.settled(len(before.Status.Members))(c)
	})
}
