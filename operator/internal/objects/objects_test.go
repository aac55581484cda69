package objects_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

func cluster(change func(*v1alpha1.QuorateClusterSpec)) *v1alpha1.QuorateCluster {
	c := &v1alpha1.QuorateCluster{ObjectMeta: metav1.ObjectMeta{Name: "kv", Namespace: "ns", UID: "u"}}
	c.Spec.Image, c.Spec.TLS.Mode = "quorate", objects.TLSBuiltIn
	if change != nil {
		change(&c.Spec)
	}
	return c
}

// Ensure that the template changes with what a restart would change, and with nothing else: any other change restarts every member.
func TestTemplate(t *testing.T) {
	before := objects.Template(cluster(nil))
	for _, row := range []struct {
		name   string
		change func(*v1alpha1.QuorateClusterSpec)
		same   bool
	}{
		{"version", func(s *v1alpha1.QuorateClusterSpec) { s.Version = "2" }, false},
		{"flag", func(s *v1alpha1.QuorateClusterSpec) { s.Args = []string{"--memory=1GiB"} }, false},
		{"place of the backup", func(s *v1alpha1.QuorateClusterSpec) { s.Backup = &v1alpha1.Backup{Place: "s3://b/p"} }, false},
		{"clients show certificates", func(s *v1alpha1.QuorateClusterSpec) { s.TLS.VerifyClients = true }, false},
		{"members", func(s *v1alpha1.QuorateClusterSpec) { s.Members = 5 }, true},
		{"consent", func(s *v1alpha1.QuorateClusterSpec) { s.Recovery = &v1alpha1.Recovery{} }, true},
		{"users", func(s *v1alpha1.QuorateClusterSpec) { s.Auth = &v1alpha1.Auth{RootPasswordSecret: "r"} }, true},
		{"hosts in certificates", func(s *v1alpha1.QuorateClusterSpec) { s.Exposure.Hosts = []string{"x"} }, true},
		{"zones", func(s *v1alpha1.QuorateClusterSpec) { s.Zones = []string{"a"} }, true},
		{"restore", func(s *v1alpha1.QuorateClusterSpec) { s.Restore = &v1alpha1.RestoreFrom{Place: "s3://b/p"} }, true},
	} {
		if got := objects.Template(cluster(row.change)) == before; got != row.same {
			t.Errorf("%s: the same template: %v", row.name, got)
		}
	}
}

// Ensure that a member listens at its own address, and for clients at the loopback address, too, to which container runtimes forward
// ports; and that clients are asked for certificates only where they shall be: the authority alone makes a member ask.
func TestPod(t *testing.T) {
	pod := objects.Pod(cluster(nil), "kv-1", "z1", nil, nil)
	args := strings.Join(pod.Spec.Containers[0].Args, " ")
	for _, want := range []string{"--zone=z1", "--listen-peer-urls=https://$(POD_IP):2380 ", "--peer-client-cert-auth",
		"--listen-client-urls=https://$(POD_IP):2379,https://127.0.0.1:2379 ",
		"--initial-advertise-peer-urls=https://kv-1.kv-members.ns.svc:2380", "--join=https://kv-members.ns.svc:2380"} {
		if !strings.Contains(args, want) {
			t.Errorf("no %s in %s", want, args)
		}
	}
	if strings.Contains(args, " --trusted-ca-file") || pod.Spec.NodeSelector[corev1.LabelTopologyZone] != "z1" || pod.Spec.Hostname != "kv-1" {
		t.Errorf("%s; %+v", args, pod.Spec.NodeSelector)
	}
	verify := objects.Pod(cluster(func(s *v1alpha1.QuorateClusterSpec) { s.TLS.VerifyClients, s.IPFamily = true, "IPv6" }), "kv-1", "", nil, []string{"kv-2", "kv-3"})
	args = strings.Join(verify.Spec.Containers[0].Args, " ")
	if !strings.Contains(args, "--join=https://kv-2.kv-members.ns.svc:2380,https://kv-3.kv-members.ns.svc:2380,https://kv-members.ns.svc:2380") {
		t.Errorf("a newcomer asks members that work first: the Service has addresses of dead ones: %s", args)
	}
	if !strings.Contains(args, "--client-cert-auth --trusted-ca-file=") || !strings.Contains(args, "https://[$(POD_IP)]:2379,https://[::1]:2379 ") {
		t.Error(args)
	}
	restored := cluster(func(s *v1alpha1.QuorateClusterSpec) {
		s.Restore = &v1alpha1.RestoreFrom{Place: "s3://b/p", At: "latest", Cluster: "abc"}
	})
	if pod := objects.Pod(restored, "kv-1", "", nil, []string{"kv-2", "kv-3"}); len(pod.Spec.InitContainers) > 0 {
		t.Error("a member of a cluster that exists restores nothing")
	}
	founder := objects.Pod(restored, "kv-1", "", []string{"kv-1"}, nil)
	if len(founder.Spec.InitContainers) != 1 || !slices.Contains(founder.Spec.InitContainers[0].Args, "--cluster=abc") {
		t.Errorf("%+v", founder.Spec.InitContainers)
	}
	volumes := len(founder.Spec.Volumes)
	restored.Spec.Restore.IdentitySecret, restored.Spec.Restore.History = "key", "7:ab"
	founder = objects.Pod(restored, "kv-1", "", []string{"kv-1"}, nil)
	init, own := founder.Spec.InitContainers[0], founder.Spec.Containers[0]
	if args := strings.Join(init.Args, " "); !strings.Contains(args, "--history=7:ab --identity=/etc/quorate/identity/identity") ||
		len(init.VolumeMounts) != len(own.VolumeMounts)+1 || len(founder.Spec.Volumes) != volumes+1 ||
		founder.Spec.Volumes[volumes].Secret.SecretName != "key" {
		t.Errorf("an encrypted backup: %s; %+v; %+v", args, init.VolumeMounts, founder.Spec.Volumes)
	}
	recover := objects.RecoverPod(cluster(nil), &objects.Recovery{Survivor: "kv-1", Leaves: []string{"kv-2", "kv-3"}, Term: 4, Index: 90,
		Compare: []string{"kv-3"}})
	if got := strings.Join(recover.Spec.Containers[0].Args, " "); got != "recover --data-dir=/var/lib/quorate/data "+
		"--members-are-lost=kv-2,kv-3 --yes --log-ends-at=4:90 --compare=/var/lib/survivors/kv-3/data "+
		"--peer-cert-file=/etc/quorate/tls/tls.crt --peer-key-file=/etc/quorate/tls/tls.key "+
		"--peer-trusted-ca-file=/etc/quorate/tls/ca.crt" || recover.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%s; %v", got, recover.Spec.RestartPolicy)
	}
	if volumes := recover.Spec.Volumes; volumes[2].PersistentVolumeClaim.ClaimName != "kv-3" {
		t.Errorf("%+v", volumes)
	}
}

// Ensure that a command of 1.0 gets no flag that it does not know.
func TestRecoverPod_former(t *testing.T) {
	for version, want := range map[string]bool{"1.0.0": false, "1.1.0": true} {
		c := cluster(nil)
		c.Spec.Version = version
		pod := objects.RecoverPod(c, &objects.Recovery{Survivor: "kv-1", Term: 4, Index: 90})
		if got := slices.Contains(pod.Spec.Containers[0].Args, "--log-ends-at=4:90"); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}
