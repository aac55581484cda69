package plugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

func labelsOf(p corev1.Pod) labels.Set { return p.Labels }

// Ensure that our commands and etcdctl's reach a release of the chart through forwarded ports, whatever the shell's variables
// say.
func TestRun_plain(t *testing.T) {
	w := newWorld(t)
	w.pod("etcd", "etcd-0", (&fakeMember{name: "etcd-0"}).start(t, nil))
	for line, want := range map[string]string{
		"etcd get a":                       "of etcd-0",
		"etcd get a --order=DESCEND":       "of etcd-0", // etcdctl's
		"etcd user list":                   "of-etcd-0",
		"etcd etcdctl user list":           "of-etcd-0",
		"etcd get a --timeout 10s -o json": "of etcd-0",
	} {
		if code, said := w.run(t, line); code != 0 || !strings.Contains(said, want) {
			t.Errorf("%s: status %d: %s", line, code, said)
		}
	}
	if w.forwards == 0 {
		t.Error("no port was forwarded")
	}
}

// Ensure that a snapshot is saved of one of several members, since nobody can name one.
func TestRun_snapshot(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"etcd-0", "etcd-1"} {
		w.pod("etcd", name, (&fakeMember{name: name}).start(t, nil))
	}
	for line, says := range map[string]string{ // what is said of a member that has no snapshots
		"etcd snapshot save ":         "is no port for clients",
		"etcd etcdctl snapshot save ": "unknown service etcdserverpb.Maintenance",
	} {
		if _, said := w.run(t, line+filepath.Join(t.TempDir(), "a.db")); !strings.Contains(said, says) {
			t.Errorf("%s: no member was asked: %s", line, said)
		}
	}
}

// Ensure that one of several members can be named, as commands want it for what each member has for itself.
func TestRun_member(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		w.pod("etcd", name, (&fakeMember{name: name}).start(t, nil))
	}
	const both = "key status is about one member"
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"--member etcd-1 etcd get a":                 {0, "of etcd-1"},
		"--member etcd-2 etcd get a":                 {0, "of etcd-2"},
		"--member etcd-2 etcd get a --order=DESCEND": {0, "of etcd-2"},                           // etcdctl's
		"--member etcd-1 etcd key status":            {command.StatusRefused, "unknown service"}, // it was asked
		"--member etcd-3 etcd key status":            {command.StatusUnreachable, "no pod etcd-3 of etcd runs; these do: etcd-0, etcd-1, etcd-2"},
		"etcd key status":                            {command.StatusUsage, both + ", and etcd has 3: kubectl quorate -n db --member etcd-0 etcd key status"},
		"release/etcd key status":                    {command.StatusUsage, "release/etcd has 3: kubectl quorate -n db --member etcd-0 release/etcd key status"},
		"etcd key rotate --timeout 1m":               {command.StatusUsage, "--member etcd-0 etcd key rotate"},
	} {
		if code, said := w.run(t, line); code != want.code || !strings.Contains(said, want.says) {
			t.Errorf("%s: status %d: %s", line, code, said)
		}
	}
}

// secure gives a pod the flags and the volume of a member with TLS, and of root's password.
func secure(p *corev1.Pod) {
	owned(p)
	tlsOf(p)
}

// owned lets a pod be one of the QuorateCluster db.
func owned(p *corev1.Pod) {
	c := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "db", UID: "uid-1"}}
	maps.Copy(p.Labels, objects.Labels(c))
	p.Labels[objects.LabelMember], p.Labels[objects.LabelPurpose] = p.Name, objects.PurposeMember
	p.OwnerReferences = objects.Meta(c, p.Name).OwnerReferences
}

func tlsOf(p *corev1.Pod) {
	c := &p.Spec.Containers[0]
	c.Args = []string{"--cert-file=/etc/quorate/tls/tls.crt", "--key-file", "/etc/quorate/tls/tls.key",
		"--trusted-ca-file=/etc/quorate/tls/ca.crt", "--client-cert-auth"}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/etc/quorate"}, {Name: "tls", MountPath: "/etc/quorate/tls"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: p.Name + "-tls"}}}}
}

// secured is a world with the QuorateCluster db, whose member asks for a certificate and a password. Another release has its
// name.
func secured(t *testing.T, names ...string) *world {
	t.Helper()
	return encrypted(t, tls.RequireAndVerifyClientCert, names...)
}

func encrypted(t *testing.T, asks tls.ClientAuthType, names ...string) *world {
	t.Helper()
	w := newWorld(t)
	authority, certificate, key := issue(t, names...)
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority))
	member := &fakeMember{name: "db-jje2-1", password: "secret"}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: asks}
	w.pod("db", "other-0", (&fakeMember{name: "other-0"}).start(t, nil), func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{}} })
	w.pod("db", "db-jje2-1", member.start(t, config), secure)
	w.secret("db-jje2-1-tls", map[string]string{"ca.crt": authority, "tls.crt": certificate, "tls.key": key})
	w.secret("db-root", map[string]string{"password": "secret"})
	w.answers["/apis/quorate.io/v1alpha1/namespaces/db/quorateclusters/db"] = map[string]any{
		"kind": "QuorateCluster", "apiVersion": "quorate.io/v1alpha1", "metadata": map[string]any{"name": "db", "uid": "uid-1"},
		"spec": map[string]any{"auth": map[string]any{"rootPasswordSecret": "db-root"}}}
	return w
}

// Ensure that certificates and the password come from the Secrets that pods and the resource name, for both kinds of commands.
func TestRun_secured(t *testing.T) {
	w := secured(t, "db-jje2-1.db-members.db.svc")
	for _, line := range []string{"db get a", "db get a --order=DESCEND", "db get a --user=root:secret"} {
		if code, said := w.run(t, line); code != 0 || !strings.Contains(said, "of db-jje2-1") {
			t.Errorf("%s: status %d: %s", line, code, said)
		}
	}
	for line, want := range map[string]string{
		"--user-secret db-jje2-1-tls db get a": `has no key "password"`,
		"db get a --user=root:wrong":           "invalid user ID or password",
		"--tls-secret db-root db get a":        `no certificate under the key "ca.crt"`,
		"--tls-secret absent db get a":         "read the Secret absent",
	} {
		if code, said := w.run(t, line); code != command.StatusRefused || !strings.Contains(said, want) {
			t.Errorf("%s: status %d: %s", line, code, said)
		}
	}
}

// Ensure that a cluster of the operator whose members ask for no certificate is known by its published authority alone: the Secrets of
// members have keys, and other names once members are replaced.
func TestRun_publishedAuthority(t *testing.T) {
	w := newWorld(t)
	authority, certificate, key := issue(t, "db-jje2-1.db-members.db.svc")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	w.pod("db", "db-jje2-1", (&fakeMember{name: "db-jje2-1"}).start(t, &tls.Config{Certificates: []tls.Certificate{pair}}), secure,
		func(p *corev1.Pod) { p.Spec.Containers[0].Args = p.Spec.Containers[0].Args[:3] })
	w.denied[inDB+"secrets/db-jje2-1-tls"] = true
	w.secret("db-ca", map[string]string{"ca.crt": authority})
	w.answers["/apis/quorate.io/v1alpha1/namespaces/db/quorateclusters/db"] = map[string]any{
		"kind": "QuorateCluster", "apiVersion": "quorate.io/v1alpha1", "metadata": map[string]any{"name": "db", "uid": "uid-1"},
		"spec": map[string]any{"tls": map[string]any{"mode": "BuiltIn"}}}
	for _, line := range []string{"db get a", "db get a --order=DESCEND"} {
		if code, said := w.run(t, line); code != 0 || !strings.Contains(said, "of db-jje2-1") {
			t.Errorf("%s: status %d: %s", line, code, said)
		}
	}
	other, _, _ := issue(t, "x")
	w.secret("db-ca", map[string]string{"ca.crt": other})
	if code, said := w.run(t, "db get a --timeout=2s"); code == 0 || !strings.Contains(said, "not signed by the authority") {
		t.Errorf("another authority: status %d: %s", code, said)
	}
}

// Ensure that a member that signs its certificate itself is reached: the API server knows whose port it is.
func TestRun_autoTLS(t *testing.T) {
	w := newWorld(t)
	_, certificate, key := issue(t, "localhost")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	w.pod("db", "db-0", (&fakeMember{name: "db-0"}).start(t, &tls.Config{Certificates: []tls.Certificate{pair}}), func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ETCD_AUTO_TLS", Value: "true"}}
	})
	if code, said := w.run(t, "db get a"); code != 0 || !strings.Contains(said, "of db-0") {
		t.Errorf("status %d: %s", code, said)
	}
}

// Ensure that pods which do not run are told where none is ready: nobody can ask the cluster then.
func TestRun_noneReady(t *testing.T) {
	w := newWorld(t)
	w.pod("db", "db-0", (&fakeMember{name: "db-0"}).start(t, nil), func(p *corev1.Pod) { p.Status.Conditions = nil })
	w.pod("db", "db-1", "", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
	if _, said := w.run(t, "db get a"); !strings.Contains(said, "see kubectl -n db get pods,pvc -o wide; db-1 is Pending") {
		t.Errorf("got %s", said)
	}
}

// Ensure that a certificate is taken for the domain of services that the member names, and for that alone.
func TestRun_otherDomain(t *testing.T) {
	authority, certificate, key := issue(t, "db-0.db-members.db.svc.example.local")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	member := (&fakeMember{name: "db-0"}).start(t, &tls.Config{Certificates: []tls.Certificate{pair}})
	for domain, want := range map[string]int{"example.local": 0, "cluster.local": command.StatusUnreachable} {
		w := newWorld(t)
		w.secret("db-0-tls", map[string]string{"ca.crt": authority, "tls.crt": certificate, "tls.key": key})
		w.pod("db", "db-0", member, tlsOf, func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ETCD_ADVERTISE_CLIENT_URLS",
				Value: "https://$(POD_NAME).db-members.db.svc." + domain + ":2379"}}
		})
		if code, said := w.run(t, "db get a --timeout=2s"); code != want {
			t.Errorf("%s: status %d, want %d: %s", domain, code, want, said)
		}
	}
}

// Ensure that a certificate for another host is refused.
func TestRun_otherCertificate(t *testing.T) {
	w := secured(t, "db-jje2-1.db-members.other.svc")
	code, said := w.run(t, "db get a --timeout=2s")
	if code == 0 || !strings.Contains(said, "is for db-jje2-1.db-members.other.svc, and for none of db-jje2-1.db-members.db.svc") {
		t.Errorf("status %d: %s", code, said)
	}
}

// Ensure that each thing that lacks is told, with what to do.
func TestRun_refusals(t *testing.T) {
	w := secured(t, "db-jje2-1.db-members.db.svc")
	w.pod("silent", "silent-0", "")
	w.pod("starting", "starting-0", "", func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodPending
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	})
	w.pod("locked", "locked-0", "")
	w.denied[inDB+"pods/locked-0/portforward"] = true
	w.pod("hidden", "hidden-0", "", tlsOf)
	w.denied[inDB+"secrets/hidden-0-tls"] = true
	for _, row := range []struct {
		line, want string
		status     int
	}{
		{"absent status", "no release of the chart named absent; it has db, hidden, locked, silent, starting", 1},
		{"starting status", "no pod of starting runs: starting-0 is ImagePullBackOff; see kubectl -n db describe pod", 3},
		{"silent get a --timeout=1s", "connection refused at port 2379", 3},
		{"silent status --timeout=1s", "connection refused at port 2379", 3}, // by several connections at once
		{"locked get a", "forward a port of pod locked-0", 1},
		{"hidden get a", "read the Secret hidden-0-tls", 1},
		{"db", "which command? Write: kubectl quorate db COMMAND", 2},
		{"db get a --endpoints=x:1", "leave it out", 2},
		{"db dev", "use quorate dev", 2},
		{"db recover --dry-run", "docs/kubernetes.md says how", 2},
		{"db restore --at=latest", "docs/kubernetes.md says how", 2},
		{"--nmae db status", "unknown flag: --nmae", 2},
		{"db sattus", "unknown command", 2},
	} {
		if code, said := w.run(t, row.line); code != row.status || !strings.Contains(said, row.want) {
			t.Errorf("%s: status %d, want %d and %q: %s", row.line, code, row.status, row.want, said)
		}
	}
	w.denied[inDB+"pods"] = true
	if code, said := w.run(t, "db status"); code != 1 || !strings.Contains(said, "list the pods of db") {
		t.Errorf("status %d: %s", code, said)
	}
}

// Ensure that a pod behind which nothing listens is told with the kubelet's words, at once, however often it is tried, and though
// what was sent to it is read by nobody: that blocks a tunnel.
func TestTunnel_refused(t *testing.T) {
	w := newWorld(t)
	w.pod("silent", "silent-0", "")
	k, err := w.connect(nil)
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := k.tunnel("silent-0")
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 10 {
		conn, err := tunnel.dial(ctx, 2379)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = conn.Write(make([]byte, 100)) }()
		if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "connection refused at port 2379") {
			t.Fatalf("got %v", err)
		}
		_ = conn.Close()
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
}

// Ensure that one tunnel carries several connections, and that a tunnel that was lost is opened again.
func TestTunnel_again(t *testing.T) {
	w := newWorld(t)
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	w.pod("echo", "echo-0", echo.Addr().String())
	k, err := w.connect(nil)
	if err != nil {
		t.Fatal(err)
	}
	tunnel, err := k.tunnel("echo-0")
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.close()
	for range 2 {
		conn, err := tunnel.dial(t.Context(), 2379)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = conn.Write([]byte("x")) }()
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	if w.forwards != 1 {
		t.Errorf("%d tunnels", w.forwards)
	}
	_ = tunnel.conn.Close()
	<-tunnel.conn.CloseChan()
	if _, err := tunnel.dial(t.Context(), 2379); err != nil || w.forwards != 2 {
		t.Errorf("a tunnel that was lost is not opened again: %v after %d", err, w.forwards)
	}
}

// Ensure that a shell is offered clusters, and then what quorate itself offers.
func TestRun_completion(t *testing.T) {
	w := newWorld(t)
	w.pod("etcd", "etcd-0", "")
	w.pod("other", "other-0", "")
	for line, want := range map[string]string{"__complete e": "etcd\n:4", "__complete -n db etcd stat": "status", "__complete etcd get --pref": "--prefix"} {
		if code, said := w.run(t, line); code != 0 || !strings.Contains(said, want) || strings.Contains(said, "other") {
			t.Errorf("%s: status %d: %s", line, code, said)
		}
	}
	if code, said := w.run(t, "--help"); code != 0 || !strings.Contains(said, "--user-secret") || !strings.Contains(said, "--context") {
		t.Errorf("status %d: %s", code, said)
	}
	if code, said := w.run(t, "absent get --help"); code != 0 || !strings.Contains(said, "--prefix") {
		t.Errorf("status %d: %s", code, said)
	}
}
