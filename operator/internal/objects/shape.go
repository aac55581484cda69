package objects

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// AntiAffinityRequired lets no two members run on one node.
const AntiAffinityRequired = "Required"

// shape is what a spec may say about pods beyond what each cluster has.
type shape struct {
	Secrets, Claims     []string
	Labels, Annotations map[string]string
	Apart               bool
	Security            *corev1.PodSecurityContext
	ServiceAccount      string
	Pull                corev1.PullPolicy
}

func shapeOf(s *v1alpha1.QuorateClusterSpec) shape {
	return shape{Secrets: s.Secrets, Claims: s.Claims, Labels: s.PodLabels, Annotations: s.PodAnnotations,
		Apart: s.PodAntiAffinity == AntiAffinityRequired, Security: s.PodSecurityContext, ServiceAccount: s.ServiceAccountName,
		Pull: s.ImagePullPolicy}
}

// mount lets a pod read the Secrets and the claims of the spec.
func mount(c *v1alpha1.QuorateCluster, pod *corev1.Pod) {
	container := &pod.Spec.Containers[0]
	for i, secret := range c.Spec.Secrets {
		name := fmt.Sprintf("secret-%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, secretVolume(name, secret))
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name,
			MountPath: path.Join(mountSecrets, secret), ReadOnly: true})
	}
	for i, claim := range c.Spec.Claims {
		name := fmt.Sprintf("claim-%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name,
			MountPath: path.Join(mountClaims, claim)})
	}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret,
		DefaultMode: ptr.To(int32(0o440))}}}
}

// apart keeps members from each other's nodes, if the spec requires that.
func apart(c *v1alpha1.QuorateCluster, pod *corev1.Pod) {
	if c.Spec.PodAntiAffinity != AntiAffinityRequired {
		return
	}
	others := Select(c)
	others[LabelPurpose] = PurposeMember // the pod of a recovery is beside the member whose claim it has
	pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: others}}}}
}

func securityContext(c *v1alpha1.QuorateCluster) *corev1.PodSecurityContext {
	if c.Spec.PodSecurityContext != nil {
		return c.Spec.PodSecurityContext.DeepCopy()
	}
	return &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(65532)),
		RunAsGroup: ptr.To(int64(65532)), FSGroup: ptr.To(int64(65532)),
		FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
}

// encryption are the flags of members with what opens their disks, for commands that read or write a member's directory.
func encryption(c *v1alpha1.QuorateCluster) (flags []string) {
	for _, flag := range c.Spec.Args {
		if strings.HasPrefix(flag, "--encryption-key-file=") || strings.HasPrefix(flag, "--encryption-kms=") {
			flags = append(flags, flag)
		}
	}
	return flags
}
