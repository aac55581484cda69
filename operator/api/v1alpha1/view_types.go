package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// QuorateBackup is the continuous backup of the cluster of the same name, as that tells it. The operator makes it; there is
// nothing to set: spec.backup of the cluster does.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=qb
// +kubebuilder:printcolumn:name="On",type=boolean,JSONPath=`.status.on`
// +kubebuilder:printcolumn:name="Restorable",type=string,JSONPath=`.status.restorableTime`
// +kubebuilder:printcolumn:name="Proven",type=string,JSONPath=`.status.provenTime`
// +kubebuilder:printcolumn:name="Trouble",type=string,JSONPath=`.status.trouble`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type QuorateBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            QuorateBackupStatus `json:"status,omitempty"`
}

// QuorateBackupList is a list of backups.
// +kubebuilder:object:root=true
type QuorateBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QuorateBackup `json:"items"`
}

// QuorateBackupStatus is how far a backup is.
type QuorateBackupStatus struct {
	On                 bool         `json:"on"`
	Place              string       `json:"place,omitempty"`
	Member             string       `json:"member,omitempty"`
	RestorableRevision int64        `json:"restorableRevision,omitempty"`
	RestorableTime     *metav1.Time `json:"restorableTime,omitempty"`
	BaseTime           *metav1.Time `json:"baseTime,omitempty"`
	ProvenTime         *metav1.Time `json:"provenTime,omitempty"`
	ProvenRevision     int64        `json:"provenRevision,omitempty"`
	Gaps               int64        `json:"gaps,omitempty"`
	Trouble            string       `json:"trouble,omitempty"`
}

// QuorateRestore makes a new QuorateCluster of a past state of a continuous backup, and tells how that goes. It never changes a
// cluster that exists.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=qr
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type QuorateRestore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec   QuorateRestoreSpec   `json:"spec"`
	Status QuorateRestoreStatus `json:"status,omitempty"`
}

// QuorateRestoreList is a list of restores.
// +kubebuilder:object:root=true
type QuorateRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QuorateRestore `json:"items"`
}

// QuorateRestoreSpec is which state is restored into which cluster.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a restore does not change: make another one"
type QuorateRestoreSpec struct {
	From RestoreFrom `json:"from"`
	// ClusterName is that of the cluster that is made.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	ClusterName string `json:"clusterName"`
	// Like is a cluster of the namespace whose spec the new one gets, but for its backup, exposure, recovery and restore.
	// +kubebuilder:validation:MinLength=1
	Like string `json:"like"`
}

// QuorateRestoreStatus is how far a restore is.
type QuorateRestoreStatus struct {
	// State is Waiting, Restoring, Done or Failed. Done and Failed are final.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
	// Conditions are Complete, once the new cluster serves the past state, and Failed, once it is known that none comes.
	// +listType=map
	// +listMapKey=type
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
}

// RestoreFrom is a past state of a continuous backup.
type RestoreFrom struct {
	// Place is where the backup is, as `quorate restore --from` takes it.
	// +kubebuilder:validation:Pattern=`^(s3|file)://.+`
	Place string `json:"place"`
	// At is latest, a time (RFC 3339), a revision, or entry:INDEX.
	// +kubebuilder:default=latest
	// +kubebuilder:validation:MaxLength=64
	At string `json:"at,omitempty"`
	// Cluster is the id of the cluster whose backup it is, if the place has several.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{1,16}$`
	Cluster string `json:"cluster,omitempty"`
	// History takes only the history that ends with this state, ENTRY:SUM, if the place has several: the restore's refusal
	// names each.
	// +kubebuilder:validation:Pattern=`^[0-9]{1,20}:[0-9a-f]{1,64}$`
	History string `json:"history,omitempty"`
	// IdentitySecret has the secret keys of age that open an encrypted backup, under the key "identity". The founder that
	// restores reads it, and no member does.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	IdentitySecret string `json:"identitySecret,omitempty"`
	// RootPasswordSecret has the password that root had in that state, under the key "password", if root has another one in
	// the Secret of the spec's auth: the operator logs in by it, and then sets that other one.
	// +kubebuilder:validation:MaxLength=253
	RootPasswordSecret string `json:"rootPasswordSecret,omitempty"`
}
