package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// QuorateClusterStatus is how a cluster is. The operator reads back what it remembers: ClusterID, Founders, Serial,
// Recovery, Dropped, FeatureLevel, Image, VoidedConsent, the revision and the id of QuorumLoss, UsersApplied, BackupApplied
// and, while no leader answers, Members. All else is only told. Objects of former forms must be read, and be valid: a field
// that gets another type gets another name, and one that a former form lacks is optional.
type QuorateClusterStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ClusterID is the id of the cluster once it was founded, in hexadecimal. From then on no pod founds one.
	ClusterID string `json:"clusterID,omitempty"`
	// Founders are the members that found the cluster.
	Founders []string `json:"founders,omitempty"`
	// Serial is the number of the last member that got a name.
	Serial int64 `json:"serial,omitempty"`
	// Action is the one thing that the operator does or waits for.
	Action string `json:"action,omitempty"`
	// HealthyMembers is the number of voters that the leader hears and that have caught up.
	HealthyMembers int32          `json:"healthyMembers"`
	Members        []MemberStatus `json:"members,omitempty"`
	// Leader is the member that leads; empty: no leader answers.
	Leader string `json:"leader,omitempty"`
	// Conditions are Available, Progressing and Healthy, and one for each finding of the doctor, by its code, with cause
	// and cure. ClaimsKept is there while claims of former members stay, NodeShared while a node has several voters,
	// VersionRefused while members do not get the spec's image, Paused once the operator has seen spec.paused,
	// Strangers while objects have labels of the cluster that are none of it.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// QuorumLoss says what is left while a majority of the voters is lost.
	QuorumLoss *QuorumLoss `json:"quorumLoss,omitempty"`
	// Recovery is the recovery that runs, or the last one.
	Recovery *RecoveryStatus `json:"recovery,omitempty"`
	// VoidedConsent is a spec.recovery that counts no more: it was used, a leader answered while the spec
	// had it, or it was there before a loss was reported. It is forgotten once the spec has none.
	VoidedConsent *Consent `json:"voidedConsent,omitempty"`
	// Dropped are members that a recovery left out. Their claims are kept: they may hold writes that the survivor lacks.
	Dropped []string `json:"dropped,omitempty"`
	// FeatureLevel is the cluster's, as a leader told it last.
	FeatureLevel int32 `json:"featureLevel,omitempty"`
	// Image is what pods of members are made with: that of the spec, but where the condition VersionRefused says that the
	// members would not start with it.
	Image string `json:"image,omitempty"`
	// ResizeRefused is why claims do not grow.
	ResizeRefused string `json:"resizeRefused,omitempty"`
	// UsersApplied is a hash of the users that were applied last, and of the versions of their Secrets.
	UsersApplied string `json:"usersApplied,omitempty"`
	// BackupApplied is a hash of the policy of the backup that was applied last.
	BackupApplied string `json:"backupApplied,omitempty"`
	// Endpoint is where clients find the cluster.
	Endpoint string `json:"endpoint,omitempty"`
}

// MemberStatus is one member, as the cluster tells it.
type MemberStatus struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	Role    string `json:"role,omitempty"`
	Zone    string `json:"zone,omitempty"`
	Node    string `json:"node,omitempty"`
	Build   string `json:"build,omitempty"`
	Healthy bool   `json:"healthy"`
	Leader  bool   `json:"leader,omitempty"`
}

// QuorumLoss is what is left after a majority was lost. It is reported once each voter that is not lost has answered, and
// until a leader answers or a recovery begins.
type QuorumLoss struct {
	// ID is another one for each loss: it changes if a quorum may have worked meanwhile.
	ID string `json:"id,omitempty"`
	// Survivor is the member with the most advanced log of those that answer. It may be a learner, which does not vote yet.
	Survivor string `json:"survivor"`
	// Revision is the survivor's: what was acknowledged after it is lost by a recovery.
	Revision int64 `json:"revision"`
	// LogIndex is the last entry of its log.
	LogIndex int64 `json:"logIndex"`
	// Survivors are the voters that answer, and the survivor. A recovery reads the claims of the others, too: writes that
	// were acknowledged by the fast path, and are in no log yet, may be there alone.
	Survivors []string `json:"survivors,omitempty"`
	// Lost are the voters that are gone.
	Lost []string `json:"lost"`
	// Consent is the command that lets the operator recover the survivor: it sets spec.recovery.
	Consent string `json:"consent"`
}

// RecoveryStatus is a recovery after the loss of a majority.
type RecoveryStatus struct {
	Survivor string `json:"survivor"`
	// Lost are the voters that were lost when it began. Until the command was started one that comes back ends it.
	Lost []LostVoter `json:"lost,omitempty"`
	// Leaves are the members that are removed for ever.
	Leaves []string `json:"leaves"`
	// Compare are other survivors, whose claims are read.
	Compare []string `json:"compare,omitempty"`
	// Consent is the one that it uses.
	Consent Consent `json:"consent,omitzero"`
	// LogTerm and LogIndex are of the last entry of the survivor's log: the command refuses one that ends elsewhere.
	LogTerm  int64 `json:"logTerm,omitempty"`
	LogIndex int64 `json:"logIndex,omitempty"`
	// Stopping says that the loss was looked at once more, and members are being stopped.
	Stopping bool `json:"stopping,omitempty"`
	Done     bool `json:"done,omitempty"`
	// Failed is why the survivor was not recovered. To try again take spec.recovery out, and give the consent again.
	Failed string `json:"failed,omitempty"`
}

// LostVoter is a voter that was lost when a recovery began.
type LostVoter struct {
	Name string `json:"name"`
	// Life is a hash of what its pod and node said; another one if its process may have run since. Empty: it had no pod.
	Life string `json:"life,omitempty"`
	// Homeless says that no node had taken its pod.
	Homeless bool `json:"homeless,omitempty"`
}

// Consent is what a spec.recovery accepts.
type Consent struct {
	AcceptLossAfter int64  `json:"acceptLossAfter"`
	Loss            string `json:"loss"`
}
