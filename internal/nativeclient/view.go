package nativeclient

import (
	"cmp"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
)

// termConfig is a term and a configuration: verdicts count together only if they were given on the same one.
type termConfig struct {
	term, index, configTerm uint64
	stage                   uint32
}

func termConfigOf(f *quoratepb.TermConfig) termConfig {
	return termConfig{term: f.GetTerm(), index: f.GetConfigIndex(), configTerm: f.GetConfigTerm(), stage: f.GetConfigStage()}
}

func (f termConfig) message() *quoratepb.TermConfig {
	return &quoratepb.TermConfig{Term: f.term, ConfigIndex: f.index, ConfigTerm: f.configTerm, ConfigStage: f.stage}
}

// config is the id of the configuration.
func (f termConfig) config() consensus.ConfigID {
	return consensus.ConfigID{
		Index: consensus.Index(f.index), Term: consensus.Term(f.configTerm), Stage: uint8(f.stage),
	}
}

// before reports whether f is older than other.
func (f termConfig) before(other termConfig) bool {
	return cmp.Or(cmp.Compare(f.term, other.term), cmp.Compare(f.index, other.index), cmp.Compare(f.stage, other.stage)) < 0
}

// View is what a proposer on the fast path must know of the cluster, in one member's words.
type View struct {
	termConfig
	Leader uint64
	Voters []uint64
	fast   bool
}

// take notes what a member says of the cluster, unless it is older than what is known.
func (v *View) take(s *quoratepb.MemberStatus) {
	if on := termConfigOf(s.TermConfig); s.Leader != 0 && !on.before(v.termConfig) {
		*v = View{termConfig: on, Leader: s.Leader, Voters: s.Voters, fast: s.Fast}
	}
}

// FarAway is the smallest round trip to the nearest member for which a client offers to all voters itself. A nearer member
// can do that for the client as fast.
const FarAway = time.Millisecond

// fewestVoters is the smallest number of voters for which offers save a round trip.
const fewestVoters = 3

// wanted returns the voters that the client should have streams to: all, if offers are worth it, given the round trip to
// the nearest member, or none.
func (v *View) wanted(nearest, far time.Duration) []uint64 {
	if v.fast && len(v.Voters) >= fewestVoters && nearest >= far {
		return v.Voters
	}
	return nil
}
