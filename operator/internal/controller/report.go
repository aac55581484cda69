package controller

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/decide"
	"github.com/quorate/quorate/operator/internal/objects"
)

// The conditions beside the findings of the doctor.
const (
	Available   = "Available"   // a leader answers: writes are taken
	Healthy     = "Healthy"     // all members are there and work, and the doctor finds nothing above advice
	Progressing = "Progressing" // the operator does something
	ClaimsKept  = "ClaimsKept"  // claims stay of members that are none any more, since nobody tells why; absent: none do
	NodeShared  = "NodeShared"  // a node has several voters; absent: none has
	// VersionRefused says why members do not get the image of the spec; absent: they do.
	VersionRefused = "VersionRefused"
	// Strangers names objects with the labels of the cluster that are none of it; absent: there are none.
	Strangers = "Strangers"
	Paused    = "Paused" // the operator has seen spec.paused, and makes no step; absent: it makes some
)

// report writes the status, if it is another one than before.
func (r *Clusters) report(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight, before *v1alpha1.QuorateClusterStatus,
	a decide.Action,
	failed error) error {
	st := &c.Status
	st.ObservedGeneration = c.Generation
	st.Action = doing(a, failed)
	st.Endpoint = fmt.Sprintf("%s://%s.%s.svc:%d", objects.Scheme(c), c.Name, c.Namespace, objects.PortClient)
	if c.Spec.Recovery == nil {
		st.VoidedConsent = nil // the next one is a new word
	}
	st.ResizeRefused = ""
	for i := range s.observed.Claims {
		if s.observed.Claims[i].Refused {
			st.ResizeRefused = fmt.Sprintf("the claim %s does not grow to %s: its storage class does not allow it",
				s.observed.Claims[i].Member, c.Spec.Storage.Size.String())
		}
	}
	if s.view != nil && (s.view.Described != nil || failed == nil) {
		membersOf(st, s)
		lossOf(st, s, c)
		conditions(st, s, c)
		refusal(st, c, s.observed.Want.Refused)
		tellStrangers(st, c, s)
	} else if meta.FindStatusCondition(st.Conditions, Available) == nil {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: Available, Status: metav1.ConditionUnknown,
			Reason: "NotLooked", Message: cmp.Or(st.Action, "no look has succeeded yet"), ObservedGeneration: c.Generation})
	}
	progress(st, c, a, failed)
	if same(*before, *st) || r.ticks(client.ObjectKeyFromObject(c), before, st) {
		return nil
	}
	if err := r.Status().Update(ctx, c); err != nil {
		return err
	}
	r.tellAvailable(c, before)
	return nil
}

// tellAvailable makes an event where a cluster has begun to serve, has stopped, or has stopped for another reason.
func (r *Clusters) tellAvailable(c *v1alpha1.QuorateCluster, before *v1alpha1.QuorateClusterStatus) {
	is := meta.FindStatusCondition(c.Status.Conditions, Available)
	was := meta.FindStatusCondition(before.Conditions, Available)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	kind := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	} else if was == nil {
		return // it is being founded
	}
	r.event(c, kind, is.Reason, Available, is.Message)
}

// progress tells what the operator does, or that it does nothing: a cluster that is paused may lack what the spec wants, so
// that nobody says whether it is settled.
func progress(st *v1alpha1.QuorateClusterStatus, c *v1alpha1.QuorateCluster, a decide.Action, failed error) {
	set := func(kind string, is metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason,
			Message: bounded(message, 2048), ObservedGeneration: c.Generation})
	}
	if c.Spec.Paused {
		set(Paused, metav1.ConditionTrue, "Spec", "spec.paused is set: no member is made, stopped, added or removed")
	} else {
		meta.RemoveStatusCondition(&st.Conditions, Paused)
	}
	switch {
	case failed != nil:
		set(Progressing, metav1.ConditionTrue, "Failed", cmp.Or(st.Action, failed.Error()))
	case c.Spec.Paused:
		set(Progressing, metav1.ConditionUnknown, Paused, st.Action)
	case a.Kind != decide.Wait || a.Why != "":
		set(Progressing, metav1.ConditionTrue, string(a.Kind), cmp.Or(st.Action, "working"))
	default:
		set(Progressing, metav1.ConditionFalse, "Settled", "the cluster is as the spec wants it")
	}
}

// steady is how long a status stays as it is where only numbers in sentences have changed, such as for how long a member is
// down.
const steady = 30 * time.Second

var digits = regexp.MustCompile(`[0-9]+`)

// ticks tells whether two statuses differ only by numbers in sentences, and one was written a moment ago.
func (r *Clusters) ticks(name types.NamespacedName, before, after *v1alpha1.QuorateClusterStatus) bool {
	still := func(st *v1alpha1.QuorateClusterStatus) *v1alpha1.QuorateClusterStatus {
		st = st.DeepCopy()
		st.Action = digits.ReplaceAllString(st.Action, "0")
		for i := range st.Conditions {
			st.Conditions[i].Message = digits.ReplaceAllString(st.Conditions[i].Message, "0")
		}
		return st
	}
	now := r.Now()
	last, known := r.told.Load(name)
	if known && now.Sub(last.(time.Time)) < steady && same(still(before), still(after)) {
		return true
	}
	r.told.Store(name, now)
	return false
}

// membersOf tells the members as the cluster does; while members tell different clusters those that were told before.
func membersOf(st *v1alpha1.QuorateClusterStatus, s *sight) {
	if s.view.Described == nil {
		st.HealthyMembers, st.Leader = 0, ""
		for i := range st.Members {
			st.Members[i].Healthy, st.Members[i].Leader = false, false
		}
		return
	}
	if s.observed.Doubted() != "" {
		return
	}
	st.Members, st.HealthyMembers, st.Leader = nil, 0, ""
	for _, m := range s.view.Described.GetMembers() {
		one := v1alpha1.MemberStatus{Name: s.view.NameOf(m), ID: strconv.FormatUint(m.GetId(), 16), Role: roleOf(m),
			Zone:  m.GetZone(),
			Build: m.GetBuild(), Leader: m.GetLeader(), Healthy: m.GetLeader() || m.GetActive() && m.GetCaughtUp()}
		if pod := s.pods[one.Name]; pod != nil {
			one.Node = pod.Spec.NodeName
		}
		if one.Leader {
			st.Leader = one.Name
		}
		if one.Healthy && one.Role != "learner" && one.Role != "joining" {
			st.HealthyMembers++
		}
		st.Members = append(st.Members, one)
	}
	slices.SortFunc(st.Members, func(a, b v1alpha1.MemberStatus) int { return decide.ByNumber(a.Name, b.Name) })
}

func roleOf(m *quoratepb.Member) string {
	return strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_"))
}

// lossOf tells what is left while a majority is lost. It stays reported until a leader answers, or the recovery begins: a
// survivor that is silent for a moment makes no consent void.
func lossOf(st *v1alpha1.QuorateClusterStatus, s *sight, c *v1alpha1.QuorateCluster) {
	if r := st.Recovery; s.view.Described != nil || r != nil && !r.Done && r.Failed == "" {
		st.QuorumLoss = nil
		return
	}
	loss := decide.LossOf(&s.observed)
	if loss == nil || len(loss.Silent) > 0 || len(loss.Ahead) > 0 {
		return
	}
	st.QuorumLoss = &v1alpha1.QuorumLoss{ID: loss.ID, Survivors: loss.Survivors, Survivor: loss.Survivor.Member,
		Revision: loss.Survivor.Revision, LogIndex: loss.Survivor.Index,
		Lost: loss.Lost,
		Consent: decide.Kubectl(c.Namespace, `patch quoratecluster %s --type merge -p `+
			`'{"spec":{"recovery":{"acceptLossAfter":%d,"loss":%q,"uncomparedLoss":null}}}'`, c.Name,
			loss.Survivor.Revision, loss.ID)}
}

// conditions tells whether the cluster serves, and what the doctor finds, with cause and cure. A finding that is gone is
// removed.
func conditions(st *v1alpha1.QuorateClusterStatus, s *sight, c *v1alpha1.QuorateCluster) {
	set := func(kind string, status bool, reason, message string) {
		value := metav1.ConditionFalse
		if status {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: kind, Status: value, Reason: reason,
			Message: bounded(message, 4096), ObservedGeneration: c.Generation})
	}
	found := map[string]bool{}
	for i := range s.view.Findings {
		f := &s.view.Findings[i]
		because := ""
		if f.Because != "" {
			because = "; its cause is " + string(f.Because)
		}
		if !found[string(f.Code)] { // findings are in the order of their importance
			set(string(f.Code), true, reasonOf(f.Severity), f.Sentence+because+" → "+cureOf(c, f))
		}
		found[string(f.Code)] = true
	}
	st.Conditions = slices.DeleteFunc(st.Conditions, func(at metav1.Condition) bool {
		_, known := doctor.Known(at.Type)
		return known && !found[at.Type]
	})
	if s.view.Described == nil {
		reason, message := noLeader(st, s)
		set(Available, false, reason, message)
		set(Healthy, false, reason, message)
		return
	}
	set(Available, true, "Leads", "a leader answers")
	if message := sharedNodes(st.Members); message != "" {
		set(NodeShared, true, reasonOf(doctor.Advice), message)
	} else {
		meta.RemoveStatusCondition(&st.Conditions, NodeShared)
	}
	if names := s.observed.Untold(); len(names) > 0 {
		set(ClaimsKept, true, reasonOf(doctor.Advice), fmt.Sprintf("the claims of %v stay, whose members are none any more: "+
			"members of 1.0 tell no epoch, so nothing tells whether a recovery left these out → delete them by hand once you "+
			"need nothing of them. Once all members run 1.1 or later, claims of members that are removed then go by themselves",
			names))
	} else {
		meta.RemoveStatusCondition(&st.Conditions, ClaimsKept)
	}
	worst := doctor.Worst(s.view.Findings)
	contradicted := s.observed.Contradicted()
	switch {
	case contradicted != "":
		set(Healthy, false, "Contradicted", contradicted)
	case len(s.view.Findings) > 0 && worst < doctor.Advice:
		f := &s.view.Findings[0]
		set(Healthy, false, reasonOf(worst), f.Sentence+" → "+cureOf(c, f))
	case st.HealthyMembers < c.Spec.Members:
		set(Healthy, false, "MembersMissing", fmt.Sprintf("%d of %d members work", st.HealthyMembers, c.Spec.Members))
	default:
		set(Healthy, true, "Well", "the doctor finds nothing above advice")
	}
}

// noLeader says why no leader answers, and what is left.
func noLeader(st *v1alpha1.QuorateClusterStatus, s *sight) (reason, message string) {
	reason, message = "NoLeader", "no leader answers"
	if loss := st.QuorumLoss; loss != nil {
		reason = "QuorumLost"
		message = fmt.Sprintf("%v are lost. %s is the best survivor, at revision %d: what was written after it "+
			"would be lost. If no other member comes back, accept that: %s", loss.Lost, loss.Survivor, loss.Revision,
			loss.Consent)
		message += compared(loss, s)
		if why := s.observed.WhyLost(loss.Lost); why != "" {
			message += ". " + why
		}
	} else if s.view.Err != nil {
		message = s.view.Err.Error()
	}
	return reason, message + prefixed(". ", s.observed.UsedNoMore())
}

// refusal is the condition of an image that is refused.
func refusal(st *v1alpha1.QuorateClusterStatus, c *v1alpha1.QuorateCluster, why string) {
	if why == "" {
		meta.RemoveStatusCondition(&st.Conditions, VersionRefused)
		return
	}
	needed, back := level.Second, ""
	if st.FeatureLevel > 0 {
		needed = level.Level(st.FeatureLevel)
		back = fmt.Sprintf(". Pods of members have %s; docs/upgrade.md has the ways back", st.Image)
	}
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: VersionRefused, Status: metav1.ConditionTrue,
		Reason: "FeatureLevel", ObservedGeneration: c.Generation,
		Message: bounded(fmt.Sprintf("no member gets %s → set spec.version to that of %s%s", why, needed.Builds(), back),
			4096)})
}

// tellStrangers sets the condition of objects that have the labels of the cluster and are none of it.
func tellStrangers(st *v1alpha1.QuorateClusterStatus, c *v1alpha1.QuorateCluster, s *sight) {
	if len(s.strangers) == 0 {
		meta.RemoveStatusCondition(&st.Conditions, Strangers)
		return
	}
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: Strangers, Status: metav1.ConditionTrue, Reason: "Labels",
		ObservedGeneration: c.Generation, Message: bounded("objects have the labels of the cluster, are none of it, and are "+
			"never touched: "+objects.Named(s.strangers)+" → take the label "+objects.LabelUID+" off them", 4096)})
}

// sharedNodes says which voters would be lost with one node, and what can be done; empty: each voter has a node of its own.
func sharedNodes(all []v1alpha1.MemberStatus) string {
	voters := 0
	var nodes, said []string
	on := map[string][]string{}
	for i := range all {
		m := &all[i]
		if m.Role != roleOf(&quoratepb.Member{Role: quoratepb.Role_ROLE_VOTER}) {
			continue
		}
		voters++
		if on[m.Node] = append(on[m.Node], m.Name); m.Node != "" && len(on[m.Node]) == 2 {
			nodes = append(nodes, m.Node)
		}
	}
	for _, node := range nodes {
		text := fmt.Sprintf("the members %v share the node %s", on[node], node)
		if left := voters - len(on[node]); left < decide.Quorum(voters) {
			text += fmt.Sprintf(": if it is lost, %d of %d voters are left, which are no quorum", left, voters)
		}
		said = append(said, text)
	}
	if len(said) == 0 {
		return ""
	}
	return strings.Join(said, "; ") + " → while another node can take a member, delete the claim of one of them: a new " +
		"member, on a new claim, takes its place"
}

// compared says which claims a recovery reads, and which it cannot.
func compared(loss *v1alpha1.QuorumLoss, s *sight) (text string) {
	deleted := s.observed.NotCompared(loss.Survivor, loss.Survivors)
	reads := slices.DeleteFunc(slices.Clone(loss.Survivors), func(name string) bool {
		return slices.Contains(deleted, name)
	})
	if len(reads) > 1 {
		text = fmt.Sprintf(". The claims of %v are compared then: a node must reach their volumes", reads)
	}
	if len(deleted) > 0 {
		text += fmt.Sprintf(". %v survive, too, and their claims were deleted: they are not compared, and nothing is "+
			"recovered while their pods are there, but with spec.recovery.uncomparedLoss: %s", deleted, loss.ID)
	}
	return text
}

func reasonOf(s doctor.Severity) string {
	switch s {
	case doctor.CannotWrite:
		return "CannotWrite"
	case doctor.NextFailure:
		return "NextFailure"
	case doctor.SlowerThanIs:
		return "Impaired"
	}
	return "Advice"
}
