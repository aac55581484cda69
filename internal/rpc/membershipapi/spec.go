package membershipapi

import (
	"math"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/rpc/validate"
)

// specOf reads what an operator wants. Every fault that can be told without the cluster is refused here, with all the
// others, so that a follower need not trouble the leader.
func specOf(r *quoratepb.ChangeSpec) (membership.Spec, error) {
	spec := membership.Spec{
		Kind: membership.Kind(r.GetKind()), Remove: ids(r.GetRemove()), Promote: ids(r.GetPromote()),
		Demote: ids(r.GetDemote()), Drain: ids(r.GetDrain()), Force: r.GetForce(),
		JoinWithinMS: r.GetJoinWithinMs(), Cordon: ids(r.GetCordon()), Uncordon: ids(r.GetUncordon()),
	}
	for _, id := range r.GetAfter() {
		spec.After = append(spec.After, membership.JobID(id))
	}
	if spec.Kind == "" {
		spec.Kind = membership.KindChange
	}
	var faults []string
	protocol, known := consensus.ParseProtocol(r.GetProtocol())
	if err := consensus.RefuseExperiment(r.GetProtocol()); err != nil {
		faults = append(faults, err.Error())
	} else if !known {
		faults = append(faults, "the protocol "+r.GetProtocol()+" is unknown: use one of "+
			strings.Join(consensus.ProtocolNames(), ", "))
	}
	spec.Protocol = protocol
	for _, n := range r.GetAdd() {
		spec.Add = append(spec.Add, membership.Newcomer{
			Name: n.GetName(), PeerURLs: tidyURLs(n.GetPeerUrls()), Learner: n.GetLearner(),
			Cordoned: n.GetCordoned(),
		})
	}
	for _, u := range r.GetUpdate() {
		spec.Update = append(spec.Update, consensus.Member{
			ID: consensus.MemberID(u.GetId()), PeerURLs: tidyURLs(u.GetPeerUrls()),
		})
	}
	if e := r.GetExpected(); e != nil {
		if e.Stage > math.MaxUint8 {
			faults = append(faults, "the expected configuration has a stage that there is not")
		}
		spec.Expected = consensus.ConfigID{
			Index: consensus.Index(e.Index), Term: consensus.Term(e.Term), Stage: uint8(e.Stage),
		}
	}
	if err := spec.Validate(); err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return membership.Spec{}, status.Error(codes.InvalidArgument, strings.Join(faults, "\n"))
	}
	return spec, nil
}

// tidyURLs gives URLs the form in which members keep them. A text that is no URL stays, to be shown in the refusal.
func tidyURLs(raw []string) []string {
	if urls, err := validate.PeerURLs(raw); err == nil {
		return urls
	}
	return raw
}

func ids(list []uint64) []consensus.MemberID {
	var ids []consensus.MemberID
	for _, id := range list {
		ids = append(ids, consensus.MemberID(id))
	}
	return ids
}
