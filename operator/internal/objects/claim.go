package objects

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Claim of a member.
func Claim(c *v1alpha1.QuorateCluster, member string, serial int64, zone string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: Meta(c, member)}
	claim.Labels[LabelMember] = member
	if c.Spec.Storage.Keep {
		claim.OwnerReferences = nil
	}
	claim.Annotations = map[string]string{AnnotationSerial: strconv.FormatInt(serial, 10), AnnotationZone: zone}
	claim.Spec = corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: c.Spec.Storage.Size}}}
	if c.Spec.Storage.ClassName != "" {
		claim.Spec.StorageClassName = ptr.To(c.Spec.Storage.ClassName)
	}
	return claim
}

// Services of a cluster: host names of members, also of those that are not ready, since they meet before they are; and an
// address for clients.
func Services(c *v1alpha1.QuorateCluster) []*corev1.Service {
	members := &corev1.Service{ObjectMeta: Meta(c, MembersService(c))}
	selector := Select(c)
	selector[LabelPurpose] = PurposeMember
	members.Spec = corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: selector,
		Ports: []corev1.ServicePort{port("client", PortClient), port("peer", PortPeer), port("metrics", PortMetrics)}}
	clients := &corev1.Service{ObjectMeta: Meta(c, c.Name)}
	clients.Annotations = c.Spec.Exposure.Annotations
	clients.Spec = corev1.ServiceSpec{Type: corev1.ServiceType(c.Spec.Exposure.Type), Selector: selector,
		Ports: []corev1.ServicePort{port("client", PortClient)}}
	return []*corev1.Service{members, clients}
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(number), Protocol: corev1.ProtocolTCP}
}

// Budget lets one voter at a time be evicted, and that only while all others are ready.
func Budget(c *v1alpha1.QuorateCluster, voters int) *policyv1.PodDisruptionBudget {
	selector := Select(c)
	selector[LabelVoter] = "true"
	return &policyv1.PodDisruptionBudget{ObjectMeta: Meta(c, c.Name), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(int32(max(0, voters-1)))),
		Selector:     &metav1.LabelSelector{MatchLabels: selector}}}
}
