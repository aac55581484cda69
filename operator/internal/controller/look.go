package controller

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/members"
	"github.com/quorate/quorate/operator/internal/objects"
)

// sight is what one look saw.
type sight struct {
	observed decide.Observed
	pods     map[string]*corev1.Pod // by name
	claims   map[string]*corev1.PersistentVolumeClaim
	group    Cluster // nil: no member has an address
	view     *members.View
	ages     *ages
	// around is what of the surroundings failed; nil: nothing. A cluster that has been founded is kept all the same.
	around error
	// strangers have the labels of the cluster, and are none of it: why, by kind and name. They are never touched.
	strangers map[string]string
}

// isOf tells whether an object is of the cluster, and remembers it if it is not.
func (s *sight) isOf(c *v1alpha1.QuorateCluster, kind string, object client.Object) bool {
	why := objects.NotOf(c, object)
	if why != "" {
		s.strangers[kind+" "+object.GetName()] = why
		s.observed.Taken = append(s.observed.Taken, object.GetName())
	}
	return why == ""
}

func (s *sight) close() {
	if s.group != nil {
		s.group.Close()
	}
}

// look reads everything that a decision depends on.
func (r *Clusters) look(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	own := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels(objects.Select(c))}
	pods, err := r.listPods(ctx, own...)
	if err != nil {
		return err
	}
	claims, err := r.listClaims(ctx, own...)
	if err != nil {
		return err
	}
	s.pods, s.claims = map[string]*corev1.Pod{}, map[string]*corev1.PersistentVolumeClaim{}
	s.observed, s.strangers = decide.Observed{Kept: kept(c)}, map[string]string{}
	s.ages = r.agesOf(client.ObjectKeyFromObject(c))
	for i := range claims {
		claim := &claims[i]
		if !s.isOf(c, "claim", claim) {
			continue
		}
		s.claims[claim.Name] = claim
		s.observed.Claims = append(s.observed.Claims, claimOf(claim, c))
	}
	nodes := map[string]*corev1.Node{}
	for i := range pods {
		pod := &pods[i]
		if !s.isOf(c, "pod", pod) {
			continue
		}
		s.pods[pod.Name] = pod
		node, err := r.node(ctx, nodes, pod.Spec.NodeName)
		if err != nil {
			return err
		}
		s.observed.Pods = append(s.observed.Pods, podOf(pod, node, s.ages))
	}
	if err := r.former(ctx, c, s); err != nil {
		return err
	}
	slices.SortFunc(s.observed.Claims, func(a, b decide.Claim) int { return cmp.Compare(a.Serial, b.Serial) })
	if err := r.ask(ctx, c, s); err != nil {
		return err
	}
	s.quiet()
	why := chooseImage(c, s)
	s.observed.Want = want(c)
	s.observed.Want.Refused = why
	if s.around != nil && s.observed.Cluster != nil { // a member that works may not start again without what failed
		s.observed.Cluster.Blockers = append(s.observed.Cluster.Blockers, oneLine(s.around))
	}
	r.ages.Store(client.ObjectKeyFromObject(c), s.ages.is)
	return nil
}

// chooseImage notes which image pods of members are made with: that of the spec, unless it is of a release that does not know
// the feature level; then the one that they had. It returns the spec's image and why it is refused, or nothing. The image of a
// member that serves is never refused: somebody's own tag may look like that of a former release.
func chooseImage(c *v1alpha1.QuorateCluster, s *sight) (why string) {
	if s.view.Described != nil && s.observed.Doubted() == "" {
		c.Status.FeatureLevel = int32(s.view.Described.GetLevel())
	}
	serving := map[string]bool{}
	for i := range s.observed.Pods {
		if p := &s.observed.Pods[i]; !p.Recovers && p.Ready && !p.Leaving {
			serving[imageOf(s.pods[p.Name])] = true
		}
	}
	tooOld := func(image string) string {
		if serving[image] {
			return ""
		}
		return objects.TooOld(image, uint32(c.Status.FeatureLevel))
	}
	asked := objects.SpecImage(c)
	if why = tooOld(asked); why == "" {
		c.Status.Image = asked
		if why = objects.Lacks(c); why != "" && c.Status.ClusterID == "" {
			return asked + ": " + why
		}
		return ""
	}
	why = asked + ": " + why
	if c.Status.Image != "" && tooOld(c.Status.Image) == "" {
		return why
	}
	for i := range s.observed.Pods { // the level rose while the image was being rolled out, or the status was removed
		if p := &s.observed.Pods[i]; !p.Recovers {
			if image := imageOf(s.pods[p.Name]); image != "" && tooOld(image) == "" {
				c.Status.Image = image
				return why
			}
		}
	}
	c.Status.Image = asked // nothing else is known
	return why
}

// former looks for pods of another cluster of the name before one is founded.
func (r *Clusters) former(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	if c.Status.ClusterID != "" || len(c.Status.Founders) > 0 {
		return nil
	}
	pods, err := r.listPods(ctx, client.InNamespace(c.Namespace), client.MatchingLabels{objects.LabelCluster: c.Name})
	if err != nil {
		return fmt.Errorf("clusters of the name: %w", err)
	}
	for i := range pods {
		if pod := &pods[i]; pod.Labels[objects.LabelUID] != string(c.UID) && pod.DeletionTimestamp == nil {
			s.observed.Former = append(s.observed.Former, pod.Name)
		}
	}
	return nil
}

// ask asks the members that have addresses.
func (r *Clusters) ask(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	s.view = &members.View{}
	var seats []members.Seat
	for _, pod := range s.pods {
		if pod.Labels[objects.LabelPurpose] == objects.PurposeMember && pod.Status.PodIP != "" &&
			pod.Status.Phase == corev1.PodRunning {
			name := pod.Labels[objects.LabelMember]
			claim := s.claims[name]
			if claim == nil { // a claim stays for as long as its pod, and has the member's certificate
				continue
			}
			seats = append(seats, members.Seat{Member: name, Namespace: c.Namespace, Address: pod.Status.PodIP,
				Host:  objects.Host(c, name),
				Epoch: decide.ParseEpoch(claim.Annotations[objects.AnnotationEpoch])})
		}
	}
	if len(seats) == 0 {
		return nil
	}
	slices.SortFunc(seats, func(a, b members.Seat) int { return decide.ByNumber(a.Member, b.Member) })
	access, err := r.access(ctx, c, seats)
	if err != nil {
		return err
	}
	if s.group, err = r.Open(seats, access); err != nil {
		return err
	}
	id, err := clusterID(c)
	if err != nil {
		return err
	}
	s.view = s.group.Look(ctx, id, decide.Newest(s.observed.Claims))
	s.observed.Cluster, s.observed.Answers = s.view.Cluster(), s.view.Answers
	if s.observed.Cluster == nil && (len(access.Passwords) > 0 || c.Spec.Auth != nil || s.view.Refused) {
		gauges := s.group.Gauges(ctx)
		s.observed.Answers = withGauges(s.observed.Answers, answers(c, gauges))
		s.observed.Trouble = trouble(c, s, len(gauges) > 0)
	}
	return nil
}

// quiet tells for how long each job of the cluster has not moved. When it moved is told by the clock of some leader, maybe a
// former one.
func (s *sight) quiet() {
	if s.observed.Cluster == nil {
		s.ages.keepJobs()
		return
	}
	for i, job := range s.view.Jobs {
		s.observed.Cluster.Jobs[i].Quiet = s.ages.of(jobAge+strconv.FormatUint(job.GetId(), 10),
			strconv.FormatInt(job.GetUpdatedMs(), 10))
	}
}

// trouble says what keeps members that run from telling anything, and what helps.
func trouble(c *v1alpha1.QuorateCluster, s *sight, gauges bool) string {
	switch {
	case s.view.Refused && c.Spec.Auth == nil:
		return "members demand a login: name a Secret with root's password by spec.auth.rootPasswordSecret"
	case s.view.Refused && c.Spec.Restore != nil:
		return "root's password is another one than those that the operator knows. A restored state has the password of " +
			"its time: name a Secret with it by from.rootPasswordSecret of another QuorateRestore"
	case s.view.Refused:
		return fmt.Sprintf("root's password is another one than those that the operator knows: put the one that the cluster "+
			"has into the Secret %s, under the key %q", c.Spec.Auth.RootPasswordSecret, passwordKey)
	case gauges && c.Spec.Auth != nil && len(c.Status.Members) == 0 && len(s.observed.Answers) == 0:
		return "members run, nobody can log in without a leader, and status.members, which says who votes, was removed: " +
			"bring the other members back, or recover by hand (docs/kubernetes-operator.md, Recover by hand)"
	}
	return ""
}

// answers are those of members of which no login can be had, since there is no leader: their metrics, and the members that the
// cluster told last. A recovery checks both: the command refuses names that are not all of the survivor's configuration.
func answers(c *v1alpha1.QuorateCluster, gauges []members.Gauge) (out []decide.Answer) {
	var voters, all []string
	ids := map[string]string{}
	for i := range c.Status.Members {
		m := &c.Status.Members[i]
		ids[m.Name] = m.ID
		if m.Role == "learner" || m.Role == "joining" {
			all = append(all, m.ID) // the survivor may not know its name
			continue
		}
		all, voters = append(all, m.Name), append(voters, m.Name)
	}
	for _, g := range gauges {
		if id := ids[g.Member]; id != "" && id == g.ID {
			own := slices.Clone(all)
			if i := slices.Index(own, id); i >= 0 {
				own[i] = g.Member
			}
			out = append(out, decide.Answer{Member: g.Member, Epoch: g.Epoch, Term: g.Term, Index: g.Index,
				Revision: g.Revision, Voters: voters, Members: own, Hearsay: true})
		}
	}
	return out
}

// withGauges adds the answers of members of which nothing else was had: one that is far behind may know of no users yet, and is
// not the only one that answers.
func withGauges(got, gauges []decide.Answer) []decide.Answer {
	for _, g := range gauges {
		if !slices.ContainsFunc(got, func(a decide.Answer) bool { return a.Member == g.Member }) {
			got = append(got, g)
		}
	}
	return got
}

func clusterID(c *v1alpha1.QuorateCluster) (uint64, error) {
	if c.Status.ClusterID == "" {
		return 0, nil
	}
	id, err := strconv.ParseUint(c.Status.ClusterID, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("status.clusterID %.40q is no number in hexadecimal: set it to what `quorate status` says",
			c.Status.ClusterID)
	}
	return id, nil
}

// access is how the operator reaches members: with the certificate of the first of them that has one, and as root.
func (r *Clusters) access(ctx context.Context, c *v1alpha1.QuorateCluster, seats []members.Seat) (a members.Access, err error) {
	for i := 0; c.Spec.TLS.Mode != objects.TLSNone && a.TLS == nil; i++ {
		if i == len(seats) {
			return a, err
		}
		var failed error
		if a.TLS, failed = r.tlsOf(ctx, c, seats[i].Member); err == nil {
			err = failed
		}
	}
	a.Passwords, err = r.rootPasswords(ctx, c)
	return a, err
}

// tlsOf shows the certificate of a member, and trusts its authority.
func (r *Clusters) tlsOf(ctx context.Context, c *v1alpha1.QuorateCluster, member string) (*tls.Config, error) {
	secret := &corev1.Secret{}
	name := types.NamespacedName{Namespace: c.Namespace, Name: objects.TLSSecretOf(c, member)}
	if err := r.Read.Get(ctx, name, secret); err != nil {
		return nil, fmt.Errorf("the certificate of %s: %w", member, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, fmt.Errorf("the Secret %s has no authority under ca.crt", name)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", name, err)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// node returns a node, nil if there is none of the name, also without one.
func (r *Clusters) node(ctx context.Context, known map[string]*corev1.Node, name string) (*corev1.Node, error) {
	if node, ok := known[name]; ok || name == "" {
		return node, nil
	}
	node := &corev1.Node{}
	err := r.Read.Get(ctx, types.NamespacedName{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		node = nil
	case err != nil:
		return nil, fmt.Errorf("the node %s: %w", name, err)
	}
	known[name] = node
	return node, nil
}

func want(c *v1alpha1.QuorateCluster) decide.Want {
	w := decide.Want{Namespace: c.Namespace, Prefix: objects.Prefix(c), Members: int(c.Spec.Members), Zones: c.Spec.Zones,
		Template: objects.Template(c),
		Bytes:    c.Spec.Storage.Size.Value(), ReplaceAfter: c.Spec.ReplaceAfter.Duration, Restore: c.Spec.Restore != nil,
		KeepClaims: c.Spec.Storage.Keep, Paused: c.Spec.Paused}
	if c.Spec.Recovery != nil && c.Spec.Recovery.Loss != "" { // one of a former form names no loss, and accepts none
		w.Consent = &decide.Consent{Revision: c.Spec.Recovery.AcceptLossAfter, Loss: c.Spec.Recovery.Loss}
		w.Uncompared = c.Spec.Recovery.UncomparedLoss == c.Spec.Recovery.Loss // one of a former loss accepts nothing
	}
	return w
}

func kept(c *v1alpha1.QuorateCluster) decide.Kept {
	k := decide.Kept{Founded: c.Status.ClusterID != "", Founders: c.Status.Founders, Serial: c.Status.Serial,
		Dropped: c.Status.Dropped, VoidConsent: consentOf(c.Status.VoidedConsent), Recovery: recoveryOf(c.Status.Recovery)}
	if loss := c.Status.QuorumLoss; loss != nil {
		k.Reported = &decide.Consent{Revision: loss.Revision, Loss: loss.ID}
	}
	return k
}

func claimOf(claim *corev1.PersistentVolumeClaim, c *v1alpha1.QuorateCluster) decide.Claim {
	serial, _ := strconv.ParseInt(claim.Annotations[objects.AnnotationSerial], 10, 64) // one without a number is older than all
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return decide.Claim{Member: claim.Name, Serial: serial, Zone: claim.Annotations[objects.AnnotationZone],
		Bytes:       size.Value(),
		Used:        claim.Annotations[objects.AnnotationUsed] != "" || claim.Annotations[objects.AnnotationEpoch] != "",
		Leaving:     claim.DeletionTimestamp != nil,
		Empty:       claim.Spec.VolumeName == "",
		Cordon:      claim.Annotations[objects.AnnotationCordon] != "",
		Refused:     claim.Annotations[objects.AnnotationRefused] == c.Spec.Storage.Size.String(),
		Leaves:      leavesOf(claim.Annotations[objects.AnnotationLeaves]),
		Removed:     claim.Annotations[objects.AnnotationRemoved] != "",
		LeftOut:     claim.Annotations[objects.AnnotationLeftOut] != "",
		LeftOutTerm: termOf(claim.Annotations[objects.AnnotationLeftOut]),
		Epoch:       decide.ParseEpoch(claim.Annotations[objects.AnnotationEpoch])}
}

// termOf is the term in the note of a claim that is used no more; 0: it has none.
func termOf(note string) uint64 {
	term, _ := strconv.ParseUint(note, 10, 64)
	return term
}

// leavesOf are the names in the note of a command.
func leavesOf(note string) []string {
	if note == "" {
		return nil
	}
	return strings.Split(note, ",")
}

func podOf(pod *corev1.Pod, node *corev1.Node, ages *ages) decide.Pod {
	p := decide.Pod{Member: pod.Labels[objects.LabelMember], Name: pod.Name,
		Template: pod.Annotations[objects.AnnotationTemplate],
		Founding: pod.Annotations[objects.AnnotationFounding] != "",
		Recovers: pod.Labels[objects.LabelPurpose] == objects.PurposeRecover,
		Compares: pod.Annotations[objects.AnnotationCompares] != "",
		Leaving:  pod.DeletionTimestamp != nil, Succeeded: pod.Status.Phase == corev1.PodSucceeded}
	p.Ended = p.Succeeded || pod.Status.Phase == corev1.PodFailed
	p.Started = p.Succeeded
	p.Said = cmp.Or(pod.Status.Message, pod.Status.Reason)
	containerOf(pod, &p)
	p.Waits = waits(pod)
	for i := range pod.Status.Conditions {
		if at := &pod.Status.Conditions[i]; at.Type == corev1.PodScheduled && at.Status == corev1.ConditionFalse {
			p.Homeless, p.Waits = true, told(at.Message)
			p.Stuck = ages.of("homeless "+string(pod.UID), at.LastTransitionTime.String())
		}
	}
	if pod.Spec.NodeName != "" {
		p.NodeLost, p.Stuck = nodeLost(pod, node, ages)
		p.Draining = node != nil && node.Spec.Unschedulable
	}
	p.Life = lifeOf(pod, node)
	return p
}

// lifeOf is another text if the process of a pod may have run meanwhile: then it was another pod, its container was started
// again, or its node was ready. No clock of the operator is in it.
func lifeOf(pod *corev1.Pod, node *corev1.Node) string {
	text := string(pod.UID)
	for i := range pod.Status.ContainerStatuses {
		at := &pod.Status.ContainerStatuses[i]
		text += fmt.Sprintf(" %d %s", at.RestartCount, at.ContainerID)
	}
	if node != nil {
		text += " " + string(node.UID)
		for i := range node.Status.Conditions {
			if at := &node.Status.Conditions[i]; at.Type == corev1.NodeReady && at.Status != corev1.ConditionTrue {
				text += " " + at.LastTransitionTime.UTC().Format(time.RFC3339)
			}
		}
	}
	return text
}

// nodeLost tells whether the node of a pod is not ready, or gone, and for how long. One that is gone has been so for ever: it
// was deleted, as by somebody who knows that its machine is gone.
func nodeLost(pod *corev1.Pod, node *corev1.Node, ages *ages) (bool, time.Duration) {
	if node == nil {
		return true, math.MaxInt64
	}
	for i := range node.Status.Conditions {
		if at := &node.Status.Conditions[i]; at.Type == corev1.NodeReady && at.Status != corev1.ConditionTrue {
			text := string(node.UID) + " " + at.LastTransitionTime.String()
			return true, ages.of("node of "+string(pod.UID), text)
		}
	}
	return false, 0 // also where it has not said yet how it is
}
