package objects_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that a spec without the fields of a pod's shape has the template that operators gave it before there were any: an upgrade of
// the operator restarts no member; and that each field restarts them.
func TestTemplate_shape(t *testing.T) {
	const before = "7d121ae9a84654ca"
	if got := objects.Template(cluster(nil)); got != before {
		t.Errorf("got the template %s, want %s: all members of all clusters restart", got, before)
	}
	preferred := cluster(func(s *v1alpha1.QuorateClusterSpec) { s.PodAntiAffinity = "Preferred" }) // the default of the CRD
	if got := objects.Template(preferred); got != before {
		t.Errorf("with what is the default: got %s", got)
	}
	for name, change := range map[string]func(*v1alpha1.QuorateClusterSpec){
		"secrets":     func(s *v1alpha1.QuorateClusterSpec) { s.Secrets = []string{"keys"} },
		"claims":      func(s *v1alpha1.QuorateClusterSpec) { s.Claims = []string{"nfs"} },
		"labels":      func(s *v1alpha1.QuorateClusterSpec) { s.PodLabels = map[string]string{"team": "a"} },
		"annotations": func(s *v1alpha1.QuorateClusterSpec) { s.PodAnnotations = map[string]string{"team": "a"} },
		"apart":       func(s *v1alpha1.QuorateClusterSpec) { s.PodAntiAffinity = objects.AntiAffinityRequired },
		"security":    func(s *v1alpha1.QuorateClusterSpec) { s.PodSecurityContext = &corev1.PodSecurityContext{} },
		"account":     func(s *v1alpha1.QuorateClusterSpec) { s.ServiceAccountName = "members" },
		"pull":        func(s *v1alpha1.QuorateClusterSpec) { s.ImagePullPolicy = corev1.PullAlways },
	} {
		if objects.Template(cluster(change)) == before {
			t.Errorf("%s: members do not restart for it", name)
		}
	}
}

// Ensure that pods have the shape that the spec wants, and the operator's own labels and annotations whatever it wants.
func TestPod_shape(t *testing.T) {
	c := cluster(func(s *v1alpha1.QuorateClusterSpec) {
		s.PodLabels = map[string]string{"team": "a", objects.LabelVoter: "no", objects.LabelPurpose: "none", objects.LabelCluster: "x"}
		s.PodAnnotations = map[string]string{"mesh": "off"}
		s.PodAntiAffinity, s.ServiceAccountName, s.ImagePullPolicy = objects.AntiAffinityRequired, "members", corev1.PullAlways
		s.PodSecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(int64(7))}
		s.Secrets, s.Claims = []string{"keys"}, []string{"nfs"}
		s.Args = []string{"--encryption-key-file=/etc/quorate/secrets/keys/disk", "--encryption-scratch-dir=/x", "--memory=1GiB"}
		s.Restore = &v1alpha1.RestoreFrom{Place: "file:///mnt/claims/nfs/kv", At: "latest", IdentitySecret: "age", History: "12:ab"}
	})
	pod := objects.Pod(c, "kv-1", "", []string{"kv-1"}, nil)
	if pod.Labels["team"] != "a" || pod.Labels[objects.LabelPurpose] != objects.PurposeMember || pod.Labels[objects.LabelCluster] != "kv" ||
		pod.Annotations["mesh"] != "off" || pod.Annotations[objects.AnnotationFounding] != "true" {
		t.Errorf("labels %v, annotations %v", pod.Labels, pod.Annotations)
	}
	if c.Spec.PodAnnotations[objects.AnnotationFounding] != "" {
		t.Error("the spec was changed")
	}
	affinity := pod.Spec.Affinity.PodAntiAffinity
	if len(affinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 || pod.Spec.ServiceAccountName != "members" ||
		*pod.Spec.SecurityContext.FSGroup != 7 || pod.Spec.SecurityContext.RunAsUser != nil {
		t.Errorf("got %+v", pod.Spec)
	}
	recovers := objects.RecoverPod(c, &objects.Recovery{Survivor: "kv-1"})
	if recovers.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		t.Error("the pod of a recovery must not wait for a node of its own: the survivor's volume may be on one")
	}
	mounts := func(container *corev1.Container) (all []string) {
		for _, m := range container.VolumeMounts {
			for _, v := range append(slices.Clone(pod.Spec.Volumes), recovers.Spec.Volumes...) {
				if v.Name == m.Name {
					all = append(all, m.MountPath)
					break
				}
			}
		}
		return all
	}
	member, restores := &pod.Spec.Containers[0], &pod.Spec.InitContainers[0]
	both := []string{"/var/lib/quorate", "/etc/quorate/tls", "/etc/quorate/secrets/keys", "/mnt/claims/nfs"}
	if got := mounts(member); !slices.Equal(got, both) {
		t.Errorf("a member has %v, want %v", got, both)
	}
	if got, want := mounts(restores), append(both, "/etc/quorate/identity"); !slices.Equal(got, want) {
		t.Errorf("the restore has %v, want %v", got, want)
	}
	if got := mounts(&recovers.Spec.Containers[0]); !slices.Equal(got, both) {
		t.Errorf("a recovery has %v, want %v", got, both)
	}
	for _, container := range []*corev1.Container{restores, &recovers.Spec.Containers[0]} {
		args := strings.Join(container.Args, " ")
		if !strings.Contains(args, " --encryption-key-file=/etc/quorate/secrets/keys/disk") || strings.Contains(args, "scratch") ||
			strings.Contains(args, "--memory") || container.ImagePullPolicy != corev1.PullAlways {
			t.Errorf("%s: got %s, pulled %s", container.Name, args, container.ImagePullPolicy)
		}
	}
	if args := strings.Join(restores.Args, " "); !strings.Contains(args, "--identity=/etc/quorate/identity/identity") ||
		!strings.Contains(args, "--history=12:ab") {
		t.Errorf("the restore is told %s", args)
	}
}
