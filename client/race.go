package client

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus/quorum"
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

// before reports whether f is older than other.
func (f termConfig) before(other termConfig) bool {
	return cmp.Or(cmp.Compare(f.term, other.term), cmp.Compare(f.index, other.index), cmp.Compare(f.stage, other.stage)) < 0
}

// view is what a proposer on the fast path must know of the cluster, in one member's words.
type view struct {
	termConfig
	leader uint64
	voters []uint64
	fast   bool
}

// race is one proposal that was offered to all voters at once.
type race struct {
	view
	asked    []uint64 // voters, beside the leader, that may hold it
	accepted []acceptance
	answered bool // by the leader, at revision
	revision uint64
	response []byte
	over     bool // it cannot be won any more
}

type acceptance struct {
	voter, revision uint64
}

// take notes what a member said, and reports whether the proposal is decided by it.
func (r *race) take(member uint64, leads bool, on termConfig, v *quoratepb.Verdict) bool {
	if v.Revision == 0 {
		r.over = r.over || leads // it goes the slow way
		r.asked = slices.DeleteFunc(r.asked, func(id uint64) bool { return id == member })
		return false
	}
	if on != r.termConfig || r.over || !slices.Contains(r.voters, member) {
		return false
	}
	if leads && !r.answered {
		r.answered, r.revision, r.response = true, v.Revision, v.Response
	}
	if !slices.ContainsFunc(r.accepted, func(a acceptance) bool { return a.voter == member }) {
		r.accepted = append(r.accepted, acceptance{member, v.Revision})
	}
	return r.decided()
}

func (r *race) decided() bool {
	holders := 0
	for _, a := range r.accepted {
		if a.revision == r.revision {
			holders++
		}
	}
	return r.answered && holders >= quorum.Super(len(r.voters))
}

// mayOutlive reports whether so many voters may hold the proposal that a new leader could find it, although the leader that
// it was offered to has refused it.
func (r *race) mayOutlive() bool { return len(r.asked) >= quorum.Recovery(len(r.voters)) }
