package objects

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Recovery is what the pod of a recovery is told.
type Recovery struct {
	Survivor    string
	Leaves      []string
	Compare     []string // other survivors, whose claims are mounted, too
	Term, Index int64    // of the last entry of the survivor's log; no term: it is not known
}

// RecoverPod runs `quorate recover` on the claim of a survivor. It reads the claims of other survivors, which hold writes of
// the fast path that are in no log yet: a node must reach all of these volumes.
func RecoverPod(c *v1alpha1.QuorateCluster, r *Recovery) *corev1.Pod {
	pod := base(c, RecoverName(r.Survivor), r.Survivor, PurposeRecover)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	container := &pod.Spec.Containers[0]
	container.Args = []string{"recover", "--data-dir=" + dataDir, "--members-are-lost=" + strings.Join(r.Leaves, ","), "--yes"}
	if r.Term > 0 && !before11(Image(c)) { // 1.0 has no such flag
		container.Args = append(container.Args, fmt.Sprintf("--log-ends-at=%d:%d", r.Term, r.Index))
	}
	for i, member := range r.Compare {
		name, at := fmt.Sprintf("survivor-%d", i), path.Join(mountOther, member)
		pod.Annotations[AnnotationCompares] = "true"
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: member}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: at})
		container.Args = append(container.Args, "--compare="+path.Join(at, path.Base(dataDir)))
	}
	if c.Spec.TLS.Mode != TLSNone {
		container.Args = append(container.Args, "--peer-cert-file="+mountTLS+"/tls.crt", "--peer-key-file="+mountTLS+"/tls.key",
			"--peer-trusted-ca-file="+mountTLS+"/ca.crt")
	}
	container.Args = append(container.Args, encryption(c)...)
	return pod
}

// RecoverName is that of the pod that recovers a member.
func RecoverName(member string) string { return member + "-recover" }
