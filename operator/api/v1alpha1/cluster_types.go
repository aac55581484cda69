package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// QuorateCluster is a cluster of Quorate: its members are pods, each with one claim.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=qc,categories=all
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.spec.members`
// +kubebuilder:printcolumn:name="Working",type=integer,JSONPath=`.status.healthyMembers`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Leader",type=string,priority=1,JSONPath=`.status.leader`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Doing",type=string,JSONPath=`.status.action`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="the name has at most 40 characters: names of members begin with it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name is a label of DNS that begins with a letter: members have host names that begin with it"
type QuorateCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   QuorateClusterSpec   `json:"spec"`
	Status QuorateClusterStatus `json:"status,omitempty"`
}

// QuorateClusterList is a list of clusters.
// +kubebuilder:object:root=true
type QuorateClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QuorateCluster `json:"items"`
}

// QuorateClusterSpec is how a cluster shall be.
// +kubebuilder:validation:XValidation:rule="has(self.restore) == has(oldSelf.restore) && (!has(self.restore) || self.restore == oldSelf.restore)",message="restore is read when the cluster is founded: make another QuorateCluster"
// +kubebuilder:validation:XValidation:rule="has(self.claims) || !has(self.backup) || !self.backup.place.startsWith('file://')",message="a directory as a place is in one of spec.claims: file:///mnt/claims/NAME/DIRECTORY"
// +kubebuilder:validation:XValidation:rule="has(self.claims) || !has(self.restore) || !self.restore.place.startsWith('file://')",message="a directory as a place is in one of spec.claims: file:///mnt/claims/NAME/DIRECTORY"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.auth) || has(self.auth)",message="auth stays: the cluster keeps its users, and the operator needs root's password"
// +kubebuilder:validation:XValidation:rule="self.storage.className == oldSelf.storage.className",message="the class of claims does not change: make another QuorateCluster and use `quorate mirror`"
// +kubebuilder:validation:XValidation:rule="self.tls.mode == oldSelf.tls.mode",message="tls.mode does not change while the cluster lives: URLs of members have http or https"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.storage.size)).compareTo(quantity(string(oldSelf.storage.size))) >= 0",message="claims do not shrink"
type QuorateClusterSpec struct {
	// Members is the number of voters. An even number survives no more failures than one voter less.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Members int32 `json:"members,omitempty"`

	// Zones are values of the node label topology.kubernetes.io/zone. Members are spread over them, and leave no zone.
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Zones []string `json:"zones,omitempty"`

	// Image is the image of the members, with or without a tag.
	// +kubebuilder:default="quorate"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Image string `json:"image,omitempty"`

	// Version is the tag of the image. Another one is rolled out member by member; the former one takes it back.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`
	Version string `json:"version,omitempty"`

	// ImagePullSecrets are Secrets of the namespace.
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// +kubebuilder:default={className:""}
	Storage Storage `json:"storage,omitzero"`

	// +kubebuilder:default={mode:"BuiltIn"}
	TLS TLS `json:"tls,omitzero"`

	// Auth enables users; without it whoever reaches the client port may do everything.
	Auth *Auth `json:"auth,omitempty"`

	// Backup is the continuous backup that the cluster ships. Without it none is begun, and one that runs stops.
	Backup *Backup `json:"backup,omitempty"`

	// Exposure is the Service of clients.
	// +kubebuilder:default={}
	Exposure Exposure `json:"exposure,omitzero"`

	// Recovery is the consent to a loss after a majority is gone for ever.
	Recovery *Recovery `json:"recovery,omitempty"`

	// Paused keeps the operator from every step: it makes, stops, adds and removes no member, asks the cluster for nothing,
	// and begins no recovery. It goes on to look, to report, and to renew certificates. A consent in Recovery that is there
	// meanwhile is void, and a recovery ends whose command was not started.
	Paused bool `json:"paused,omitempty"`

	// Restore founds the cluster with a past state of a continuous backup.
	Restore *RestoreFrom `json:"restore,omitempty"`

	// ReplaceAfter is for how long a voter on a lost node, or without a place, is waited for before another member takes
	// its place.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="at least 5s: an election takes its time"
	ReplaceAfter metav1.Duration `json:"replaceAfter,omitzero"`

	// Args are further flags of members, each as --name=value. Flags that the operator sets are refused.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^--[a-z][a-z0-9-]*(=.*)?$`
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('^--(name|zone|data-dir|wal-dir|initial-.*|join.*|replaces|founding|listen-.*|advertise-.*|force-new-cluster|cert-file|key-file|trusted-ca-file|client-cert-auth|peer-.*-file|peer-client-cert-auth|backup-places|config-file|auto-care)(=.*)?$'))",message="names a flag that the operator sets itself"
	Args []string `json:"args,omitempty"`

	// Env are further variables of members, such as credentials of a place for backups.
	// +kubebuilder:validation:MaxItems=32
	Env []corev1.EnvVar `json:"env,omitempty"`

	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// +kubebuilder:validation:MaxItems=64
	Tolerations       []corev1.Toleration `json:"tolerations,omitempty"`
	PriorityClassName string              `json:"priorityClassName,omitempty"`

	// Secrets are Secrets of the namespace, whose keys are files below /etc/quorate/secrets/NAME in members, and in the pods
	// that restore and recover: authorities and credentials of places for backups, keys of disks, keys of tokens. Members
	// that shall read another content are restarted by you.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Secrets []string `json:"secrets,omitempty"`
	// Claims are claims of the namespace that all members can mount at once, below /mnt/claims/NAME: directories as places of
	// backups, file:///mnt/claims/NAME/DIRECTORY.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Claims []string `json:"claims,omitempty"`

	// PodLabels and PodAnnotations are further ones of pods. The operator's own win.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('quorate.io/') && !k.startsWith('app.kubernetes.io/'))",message="labels of quorate.io and app.kubernetes.io are the operator's"
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('quorate.io/'))",message="annotations of quorate.io are the operator's"
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
	// PodAntiAffinity: with Required no two members are on one node, and one that no node is left for waits. With Preferred
	// they may be, if their claims allow it.
	// +kubebuilder:validation:Enum=Preferred;Required
	// +kubebuilder:default=Preferred
	PodAntiAffinity string `json:"podAntiAffinity,omitempty"`
	// PodSecurityContext takes the place of the operator's, which runs members as user and group 65532. An empty one leaves
	// that to the platform, as OpenShift wants it.
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`
	// ServiceAccountName is the account of pods. They get no token of it from Kubernetes.
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// ImagePullPolicy is that of all containers; empty: that of Kubernetes.
	// +kubebuilder:validation:Enum="";Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// IPFamily is the family of the pods' addresses.
	// +kubebuilder:validation:Enum=IPv4;IPv6
	// +kubebuilder:default=IPv4
	IPFamily string `json:"ipFamily,omitempty"`
}

// Storage is what each member has a claim to.
type Storage struct {
	// Size of each claim. It may grow if the class allows that.
	// +kubebuilder:default="8Gi"
	Size resource.Quantity `json:"size,omitzero"`
	// ClassName is the storage class; empty: the default one.
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	ClassName string `json:"className,omitempty"`
	// Keep keeps the claims of members that left, and of a cluster that is deleted, also claims that were made before it was
	// set.
	Keep bool `json:"keep,omitempty"`
}

// TLS is how connections of clients and members are encrypted, and what proves who they are.
// +kubebuilder:validation:XValidation:rule="(self.mode == 'Secret') == has(self.secretName)",message="secretName goes with mode Secret"
// +kubebuilder:validation:XValidation:rule="(self.mode == 'CertManager') == has(self.issuerRef)",message="issuerRef goes with mode CertManager"
type TLS struct {
	// Mode: BuiltIn makes an authority for the cluster and a certificate for each member, and renews them; Secret uses one
	// of yours for all members; CertManager asks an issuer; None encrypts nothing.
	// +kubebuilder:validation:Enum=None;BuiltIn;Secret;CertManager
	// +kubebuilder:default=BuiltIn
	Mode string `json:"mode,omitempty"`
	// SecretName has tls.crt, tls.key and ca.crt, for both usages, for the Service of clients,
	// *.CLUSTER-members.NAMESPACE.svc, and the same with the domain of Kubernetes (.cluster.local): by that name members
	// find who connects.
	// +kubebuilder:validation:MinLength=1
	SecretName string `json:"secretName,omitempty"`
	// IssuerRef is an issuer of cert-manager.
	IssuerRef *IssuerRef `json:"issuerRef,omitempty"`
	// VerifyClients asks clients for certificates of the authority; their common names are their users.
	VerifyClients bool `json:"verifyClients,omitempty"`
	// Validity is for how long certificates of BuiltIn are good; they are renewed after two thirds of it.
	// +kubebuilder:default="2160h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m')",message="at least 10m: kubelets bring new files within minutes"
	Validity metav1.Duration `json:"validity,omitzero"`
}

// IssuerRef names an issuer of cert-manager.
type IssuerRef struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// +kubebuilder:validation:Enum=Issuer;ClusterIssuer
	// +kubebuilder:default=Issuer
	Kind string `json:"kind,omitempty"`
}

// Auth is the users of a cluster.
type Auth struct {
	// RootPasswordSecret has root's password under the key "password". The operator makes it if it is absent.
	// +kubebuilder:validation:MinLength=1
	RootPasswordSecret string `json:"rootPasswordSecret"`
	// Users are added, and get their passwords and roles. Others are left alone.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Users []User `json:"users,omitempty"`
}

// User is one who may log in, with what it may do.
type User struct {
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`
	// +kubebuilder:validation:XValidation:rule="self != 'root'",message="root is made from rootPasswordSecret"
	Name string `json:"name"`
	// PasswordSecret has the password under the key "password"; empty: the user comes with a certificate.
	PasswordSecret string `json:"passwordSecret,omitempty"`
	// Prefixes are what the user may read or write: of a role of the user's name.
	// +kubebuilder:validation:MaxItems=32
	Prefixes []Permission `json:"prefixes,omitempty"`
}

// Permission is what may be done to the keys with a prefix.
type Permission struct {
	// Prefix of keys; empty: all keys.
	// +kubebuilder:validation:MaxLength=256
	Prefix string `json:"prefix"`
	// +kubebuilder:validation:Enum=Read;Write;ReadWrite
	Access string `json:"access"`
}

// Backup is the policy of the continuous backup.
type Backup struct {
	// Place is a URL without credentials, as `quorate backup start` takes it; those are in Env.
	// +kubebuilder:validation:Pattern=`^(s3|file)://.+`
	// +kubebuilder:validation:MaxLength=1024
	Place string `json:"place"`
	// Keep is the rule of what stays; empty: all.
	// +kubebuilder:validation:MaxLength=256
	Keep string `json:"keep,omitempty"`
	// Recipients are public keys of age that it is encrypted to.
	// +kubebuilder:validation:MaxItems=16
	Recipients []string `json:"recipients,omitempty"`
	// BaseEvery is how often a base is made.
	// +kubebuilder:default="6h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('60s') && duration(self) <= duration('720h')",message="from 60s to 720h"
	BaseEvery metav1.Duration `json:"baseEvery,omitzero"`
}

// Exposure is the Service of clients, which is called as the cluster.
type Exposure struct {
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +kubebuilder:default=ClusterIP
	Type        string            `json:"type,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Hosts are further names in the certificates of members, by which clients reach them.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`
	Hosts []string `json:"hosts,omitempty"`
}

// Recovery is the consent to a loss.
// +kubebuilder:validation:XValidation:rule="!has(self.uncomparedLoss) || has(self.loss) && self.uncomparedLoss == self.loss",message="uncomparedLoss is the id of the loss that is accepted, as loss is: take that of a former loss out"
type Recovery struct {
	// AcceptLossAfter is the revision that status.quorumLoss reports: writes after it may be lost.
	// +kubebuilder:validation:Minimum=0
	AcceptLossAfter int64 `json:"acceptLossAfter"`
	// Loss is the id that status.quorumLoss reports. The consent counts for that loss alone, and once; one that is there
	// while a leader answers, or before a loss is reported, is void. Taken out, it ends a recovery whose command was not
	// started. Without it nothing is accepted.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{1,64}$`
	Loss string `json:"loss,omitempty"`
	// UncomparedLoss is the id of the loss once more, and accepts, too, that writes are lost which were acknowledged by the
	// fast path and are in the claims of other survivors alone. It counts for that loss alone. Without it the pod that recovers
	// the survivor reads these claims, and waits for a node that reaches them all.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{1,64}$`
	UncomparedLoss string `json:"uncomparedLoss,omitempty"`
}
