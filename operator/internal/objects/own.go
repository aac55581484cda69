package objects

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// NotOf says why a pod or a claim that has the labels of a cluster is none of it; empty: it is. Labels are anybody's, and
// copies keep them: a member's name is the cluster's own prefix and a number, both objects have it, and only the operator, or
// who may act for it, makes a pod that the cluster controls.
func NotOf(c *v1alpha1.QuorateCluster, object metav1.Object) string {
	name, member := object.GetName(), object.GetLabels()[LabelMember]
	pod, isPod := object.(*corev1.Pod)
	recovers := isPod && pod.Labels[LabelPurpose] == PurposeRecover
	number, _ := strconv.ParseInt(strings.TrimPrefix(member, Prefix(c)), 10, 64)
	owner := metav1.GetControllerOf(object)
	switch {
	case object.GetLabels()[LabelUID] != string(c.UID) || object.GetLabels()[LabelCluster] != c.Name:
		return "its labels are of another cluster"
	case recovers && name != RecoverName(member), !recovers && name != member:
		return "its name is not that of its label " + LabelMember
	case number <= 0 || member != Prefix(c)+strconv.FormatInt(number, 10):
		return "no member of the cluster has its name"
	case isPod && !recovers && pod.Labels[LabelPurpose] != PurposeMember:
		return "its label " + LabelPurpose + " says nothing of a member"
	case isPod && (owner == nil || owner.UID != c.UID), owner != nil && owner.UID != c.UID:
		return "the cluster does not own it"
	}
	return ""
}

// Named tells of the objects that have the labels of a cluster and are none of it, which are never touched; empty: there are
// none. Reasons are by kind and name.
func Named(strangers map[string]string) string {
	said := make([]string, 0, len(strangers))
	for name, why := range strangers {
		said = append(said, name+" ("+why+")")
	}
	slices.Sort(said)
	if len(said) > 3 {
		said = append(said[:3], "and more")
	}
	return strings.Join(said, ", ")
}
