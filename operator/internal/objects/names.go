package objects

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/quorate/quorate/operator/api/v1alpha1"
)

// Labels and annotations of what belongs to a cluster.
const (
	LabelCluster = "quorate.io/cluster" // its name
	LabelUID     = "quorate.io/uid"     // its UID: one of the same name has another
	LabelMember  = "quorate.io/member"
	LabelVoter   = "quorate.io/voter" // "true" on pods of voters
	LabelPurpose = "quorate.io/purpose"

	AnnotationSerial = "quorate.io/serial"
	AnnotationZone   = "quorate.io/zone"
	AnnotationUsed   = "quorate.io/used"  // a pod was made for the claim
	AnnotationEpoch  = "quorate.io/epoch" // in which a leader named the claim's member last
	// AnnotationLeaves is on the survivor's claim: the members, with commas, that the command of a recovery leaves out which
	// may have run there.
	AnnotationLeaves   = "quorate.io/leaves"
	AnnotationRemoved  = "quorate.io/removed"  // the claim's member was removed from the cluster
	AnnotationLeftOut  = "quorate.io/left-out" // no process starts there; the term of the leader that answered, or "true"
	AnnotationCompares = "quorate.io/compares" // the pod of a recovery reads claims of other survivors
	AnnotationCordon   = "quorate.io/cordoned" // the operator keeps the member from leading
	AnnotationTemplate = "quorate.io/template"
	AnnotationFounding = "quorate.io/founding"
	AnnotationRefused  = "quorate.io/resize-refused" // the size that the claim does not grow to
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	operatorName   = "quorate-operator"
)

// Purposes of pods.
const (
	PurposeMember  = "member"
	PurposeRecover = "recover"
)

// Containers of pods: others are not the operator's, as a mesh adds them.
const (
	ContainerQuorate = "quorate" // of a member, or of the command that recovers one
	ContainerRestore = "restore" // runs before the first member of a restored cluster
)

// Ports of members.
const (
	PortClient  = 2379
	PortPeer    = 2380
	PortMetrics = 2381
)

const (
	volumeData = "data"
	mountData  = "/var/lib/quorate"
	dataDir    = mountData + "/data"
	mountOther = "/var/lib/survivors" // of the pod of a recovery: a folder for each other survivor
	volumeTLS  = "tls"
	mountTLS   = "/etc/quorate/tls"

	volumeIdentity = "identity" // secret keys of an encrypted backup, for the founder that restores it
	mountIdentity  = "/etc/quorate/identity"
	mountSecrets   = "/etc/quorate/secrets" // a folder for each of spec.secrets
	mountClaims    = "/mnt/claims"          // a folder for each of spec.claims
)

// Modes of TLS.
const (
	TLSNone        = "None"
	TLSBuiltIn     = "BuiltIn"
	TLSSecret      = "Secret"
	TLSCertManager = "CertManager"
)

// Prefix begins the names of members. It differs for each object of Kubernetes, so that claims which are left of a former
// cluster of the name are never taken for those of this one.
func Prefix(c *v1alpha1.QuorateCluster) string {
	sum := sha256.Sum256([]byte(c.UID))
	return fmt.Sprintf("%s-%s", c.Name, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:4])) + "-"
}

// MembersService is the name of the Service that gives each member a host name.
func MembersService(c *v1alpha1.QuorateCluster) string { return c.Name + "-members" }

// Host is the host name of a member.
func Host(c *v1alpha1.QuorateCluster, member string) string {
	return fmt.Sprintf("%s.%s.%s.svc", member, MembersService(c), c.Namespace)
}

// Scheme of the URLs of members.
func Scheme(c *v1alpha1.QuorateCluster) string {
	if c.Spec.TLS.Mode == TLSNone {
		return "http"
	}
	return "https"
}

// PeerURL is where the others reach a member.
func PeerURL(c *v1alpha1.QuorateCluster, member string) string {
	return fmt.Sprintf("%s://%s:%d", Scheme(c), Host(c, member), PortPeer)
}

// TLSSecretOf is the Secret with the certificate of a member.
func TLSSecretOf(c *v1alpha1.QuorateCluster, member string) string {
	if c.Spec.TLS.Mode == TLSSecret {
		return c.Spec.TLS.SecretName
	}
	return member + "-tls"
}

// Labels of all objects of a cluster.
func Labels(c *v1alpha1.QuorateCluster) map[string]string {
	return map[string]string{LabelCluster: c.Name, LabelUID: string(c.UID), "app.kubernetes.io/name": "quorate",
		"app.kubernetes.io/instance": c.Name, labelManagedBy: operatorName}
}

// Managed finds the objects of all clusters.
func Managed() map[string]string { return map[string]string{labelManagedBy: operatorName} }

// Select finds the objects of a cluster.
func Select(c *v1alpha1.QuorateCluster) map[string]string {
	return map[string]string{LabelUID: string(c.UID), LabelCluster: c.Name}
}

// Meta is the metadata of an object that goes with its cluster.
func Meta(c *v1alpha1.QuorateCluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace, Labels: Labels(c), OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "QuorateCluster", Name: c.Name, UID: c.UID, Controller: ptr.To(true),
		BlockOwnerDeletion: ptr.To(true),
	}}}
}

// hash of a value's JSON, short enough for a label.
func hash(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // a type of Kubernetes that has no JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
