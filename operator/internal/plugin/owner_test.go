package plugin

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/internal/ctl/command"
)

// trap listens for those who believe labels, and counts them.
func trap(t *testing.T) (string, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	met := &atomic.Int32{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			met.Add(1)
			_ = conn.Close()
		}
	}()
	return l.Addr().String(), met
}

// Ensure that nothing is sent to a pod that wears a cluster's labels and is none of it: of a QuorateCluster without its owner, or with its
// owner and a name that the status does not have; and of a release without its StatefulSet, or beyond its replicas; and that no Secret is
// read which such a pod names.
func TestRun_strangers(t *testing.T) {
	at, met := trap(t)
	w := secured(t, "db-jje2-1.db-members.db.svc")
	w.answers["/apis/quorate.io/v1alpha1/namespaces/db/quorateclusters/db"].(map[string]any)["status"] = map[string]any{
		"members": []any{map[string]any{"name": "db-jje2-1"}}}
	w.pod("db", "db-jje2-7", at, owned, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{}} })
	w.pod("db", "db-jje2-8", at, owned) // its owner is forged
	w.pod("db", "aaa", at, owned)
	w.pod("etcd", "etcd-0", (&fakeMember{name: "etcd-0"}).start(t, nil))
	evil := func(p *corev1.Pod) {
		p.Annotations = map[string]string{passwordAnnotation: "prod/password"}
		p.OwnerReferences = []metav1.OwnerReference{{}}
	}
	w.pod("etcd", "aaa-0", at, evil)
	w.secret("prod", map[string]string{"password": "secret"})
	set := w.answers["/apis/apps/v1/namespaces/db/statefulsets/etcd"]
	w.pod("etcd", "etcd-5", at, func(p *corev1.Pod) { p.Annotations = map[string]string{passwordAnnotation: "prod/password"} })
	w.answers["/apis/apps/v1/namespaces/db/statefulsets/etcd"] = set // which has one replica
	for range 4 {
		for line, want := range map[string]string{"db get a": "of db-jje2-1", "etcd get a": "of etcd-0"} {
			if code, said := w.run(t, line); code != 0 || !strings.Contains(said, want) {
				t.Errorf("%s: status %d: %s", line, code, said)
			}
		}
	}
	if met.Load() > 0 {
		t.Errorf("strangers were met %d times", met.Load())
	}
}

// Ensure that a member which does not encrypt though the spec says so gets nothing, and that a name which a QuorateCluster and a release
// have is asked for.
func TestRun_inClear(t *testing.T) {
	at, met := trap(t)
	w := newWorld(t)
	w.secret("db-root", map[string]string{"password": "secret"})
	spec := map[string]any{"auth": map[string]any{"rootPasswordSecret": "db-root"}, "tls": map[string]any{"mode": "BuiltIn"}}
	w.answers["/apis/quorate.io/v1alpha1/namespaces/db/quorateclusters/db"] = map[string]any{"kind": "QuorateCluster",
		"apiVersion": "quorate.io/v1alpha1", "metadata": map[string]any{"name": "db", "uid": "uid-1"}, "spec": spec}
	w.pod("db", "db-jje2-1", at, owned)
	if code, said := w.run(t, "db get a"); code != command.StatusRefused || !strings.Contains(said, "the pod db-jje2-1 does not encrypt") {
		t.Errorf("status %d: %s", code, said)
	}
	if met.Load() > 0 {
		t.Error("the pod was met")
	}
	spec["tls"], spec["auth"] = map[string]any{"mode": "None"}, map[string]any{}
	w.ports["db-jje2-1"] = (&fakeMember{name: "db-jje2-1"}).start(t, nil)
	w.pod("db", "set-0", (&fakeMember{name: "set-0"}).start(t, nil))
	if code, said := w.run(t, "db get a"); code != command.StatusUsage || !strings.Contains(said, "write quoratecluster/db or release/db") {
		t.Errorf("status %d: %s", code, said)
	}
	for line, want := range map[string]string{"quoratecluster/db get a": "of db-jje2-1", "release/db get a": "of set-0"} {
		if code, said := w.run(t, line); code != 0 || !strings.Contains(said, want) {
			t.Errorf("%s: status %d: %s", line, code, said)
		}
	}
	if code, said := w.run(t, "pod/db get a"); code != command.StatusUsage || !strings.Contains(said, "write NAME") {
		t.Errorf("status %d: %s", code, said)
	}
}
