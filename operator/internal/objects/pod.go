package objects

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Image that pods of members are made with. It is the spec's unless that is refused.
func Image(c *v1alpha1.QuorateCluster) string {
	if c.Status.Image != "" {
		return c.Status.Image
	}
	return SpecImage(c)
}

// SpecImage is the image that the spec wants.
func SpecImage(c *v1alpha1.QuorateCluster) string {
	if c.Spec.Version == "" {
		return c.Spec.Image
	}
	return c.Spec.Image + ":" + c.Spec.Version
}

// Lacks says what the spec wants that its image does not know, by its tag; empty: nothing that keeps a cluster from beginning.
func Lacks(c *v1alpha1.QuorateCluster) string {
	if c.Spec.Restore != nil && before11(SpecImage(c)) {
		return "release 1.0 has no command that restores a continuous backup"
	}
	return ""
}

// layout is raised with a change of Pod that members must be restarted for. Any other change counts from a member's next
// start, so that a new build of the operator restarts none.
const layout = 1

// Template is a hash of what the spec says about a member's pod: where it differs from the pod's, a restart changes
// something. It is the same for all members.
func Template(c *v1alpha1.QuorateCluster) string {
	place := ""
	if c.Spec.Backup != nil && !before11(Image(c)) {
		place = c.Spec.Backup.Place
	}
	s := &c.Spec
	parts := []any{layout, Image(c), s.ImagePullSecrets, s.TLS.SecretName, s.TLS.VerifyClients, place, s.Args, s.Env,
		s.Resources,
		s.NodeSelector, s.Tolerations, s.PriorityClassName, s.IPFamily}
	if more := shapeOf(s); !reflect.DeepEqual(more, shape{}) {
		parts = append(parts, more) // fields that came later restart no member that has none of them
	}
	return hash(parts)
}

// Pod of a member. With founders it may found the cluster, and is one of them; without, it asks the others that are known
// to work.
func Pod(c *v1alpha1.QuorateCluster, member, zone string, founders, others []string) *corev1.Pod {
	pod := base(c, member, member, PurposeMember)
	container := &pod.Spec.Containers[0]
	container.Args = args(c, member, zone, membership(c, founders, others))
	container.Ports = []corev1.ContainerPort{{Name: "client", ContainerPort: PortClient}, {Name: "peer",
		ContainerPort: PortPeer},
		{Name: "metrics", ContainerPort: PortMetrics}}
	apart(c, pod)
	container.LivenessProbe = probe("/livez", 10, 6)
	container.ReadinessProbe = probe("/readyz", 2, 2)
	if zone != "" {
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[corev1.LabelTopologyZone] = zone
	}
	if len(founders) > 0 {
		pod.Annotations[AnnotationFounding] = "true"
		if c.Spec.Restore != nil {
			pod.Spec.InitContainers = []corev1.Container{restore(c, pod, member)}
		}
	}
	return pod
}

func base(c *v1alpha1.QuorateCluster, name, member, purpose string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: Meta(c, name)}
	for key, value := range c.Spec.PodLabels {
		if _, own := pod.Labels[key]; !own {
			pod.Labels[key] = value
		}
	}
	pod.Labels[LabelMember], pod.Labels[LabelPurpose] = member, purpose
	pod.Annotations = clone(c.Spec.PodAnnotations)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Spec = corev1.PodSpec{
		Hostname: member, Subdomain: MembersService(c), ImagePullSecrets: c.Spec.ImagePullSecrets,
		NodeSelector: clone(c.Spec.NodeSelector), Tolerations: c.Spec.Tolerations, PriorityClassName: c.Spec.PriorityClassName,
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(int64(60)),
		SecurityContext:               securityContext(c), ServiceAccountName: c.Spec.ServiceAccountName,
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{MatchLabels: Select(c)}}}},
		}},
		Volumes: []corev1.Volume{{Name: volumeData, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: member}}}},
		Containers: []corev1.Container{{
			Name: ContainerQuorate, Image: Image(c), ImagePullPolicy: c.Spec.ImagePullPolicy, Resources: c.Spec.Resources,
			Env: append([]corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}}}, c.Spec.Env...),
			VolumeMounts:             []corev1.VolumeMount{{Name: volumeData, MountPath: mountData}},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities:           &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}
	if c.Spec.TLS.Mode != TLSNone {
		pod.Spec.Volumes = append(pod.Spec.Volumes, secretVolume(volumeTLS, TLSSecretOf(c, member)))
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: volumeTLS, MountPath: mountTLS, ReadOnly: true})
	}
	mount(c, pod)
	return pod
}

func clone(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[key] = value
	}
	return out
}

func args(c *v1alpha1.QuorateCluster, member, zone string, membership []string) []string {
	own, loopback := "$(POD_IP)", "127.0.0.1" // which ports are forwarded to, as for `kubectl quorate`
	if c.Spec.IPFamily == "IPv6" {
		own, loopback = "[$(POD_IP)]", "[::1]"
	}
	scheme, host := Scheme(c), Host(c, member)
	out := []string{"--name=" + member, "--data-dir=" + dataDir,
		fmt.Sprintf("--listen-peer-urls=%s://%s:%d", scheme, own, PortPeer), "--initial-advertise-peer-urls=" + PeerURL(c,
			member),
		fmt.Sprintf("--listen-client-urls=%s://%s:%d,%[1]s://%[4]s:%[3]d", scheme, own, PortClient, loopback),
		fmt.Sprintf("--advertise-client-urls=%s://%s:%d", scheme, host, PortClient),
		fmt.Sprintf("--listen-metrics-urls=http://%s:%d", own, PortMetrics)}
	if zone != "" {
		out = append(out, "--zone="+zone)
	}
	out = append(out, membership...)
	if c.Spec.TLS.Mode != TLSNone {
		crt, key, ca := mountTLS+"/tls.crt", mountTLS+"/tls.key", mountTLS+"/ca.crt"
		out = append(out, "--cert-file="+crt, "--key-file="+key, "--peer-cert-file="+crt,
			"--peer-key-file="+key, "--peer-trusted-ca-file="+ca, "--peer-client-cert-auth")
		if c.Spec.TLS.VerifyClients {
			out = append(out, "--client-cert-auth", "--trusted-ca-file="+ca) // the latter alone asks for certificates, too
		}
	}
	if c.Spec.Backup != nil && !before11(Image(c)) {
		out = append(out, "--backup-places="+c.Spec.Backup.Place)
	}
	return append(out, c.Spec.Args...)
}

// membership says of which cluster a process is that has no data yet. One that joins asks members that work, and last
// whoever the Service of members knows: that has addresses of dead pods, too. The operator has had it added before.
func membership(c *v1alpha1.QuorateCluster, founders, others []string) []string {
	if len(founders) == 0 {
		urls := make([]string, 0, len(others)+1)
		for _, name := range others {
			urls = append(urls, PeerURL(c, name))
		}
		urls = append(urls, fmt.Sprintf("%s://%s.%s.svc:%d", Scheme(c), MembersService(c), c.Namespace, PortPeer))
		return []string{"--join=" + strings.Join(urls, ",")}
	}
	pairs := make([]string, len(founders))
	for i, name := range founders {
		pairs[i] = name + "=" + PeerURL(c, name)
	}
	return []string{"--initial-cluster=" + strings.Join(pairs, ","), "--initial-cluster-token=" + string(c.UID)}
}

// restore makes the founder's directory from a continuous backup. It is not asked for again once the directory is there.
func restore(c *v1alpha1.QuorateCluster, pod *corev1.Pod, name string) corev1.Container {
	from := c.Spec.Restore
	init := *pod.Spec.Containers[0].DeepCopy()
	init.Name, init.Ports, init.LivenessProbe, init.ReadinessProbe = ContainerRestore, nil, nil, nil
	init.Args = []string{"restore", "--skip-existing", "--from=" + from.Place, "--at=" + from.At, "--data-dir=" + dataDir,
		"--name=" + name,
		"--initial-cluster=" + name + "=" + PeerURL(c, name), "--initial-cluster-token=" + string(c.UID),
		"--initial-advertise-peer-urls=" + PeerURL(c, name)}
	if from.Cluster != "" {
		init.Args = append(init.Args, "--cluster="+from.Cluster)
	}
	if from.History != "" {
		init.Args = append(init.Args, "--history="+from.History)
	}
	if from.IdentitySecret != "" {
		pod.Spec.Volumes = append(pod.Spec.Volumes, secretVolume(volumeIdentity, from.IdentitySecret))
		init.VolumeMounts = append(init.VolumeMounts, corev1.VolumeMount{Name: volumeIdentity, MountPath: mountIdentity,
			ReadOnly: true})
		init.Args = append(init.Args, "--identity="+mountIdentity+"/identity")
	}
	init.Args = append(init.Args, encryption(c)...)
	return init
}

func probe(path string, every, failures int32) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: every, TimeoutSeconds: 2, FailureThreshold: failures, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(PortMetrics), Scheme: corev1.URISchemeHTTP}}}
}
