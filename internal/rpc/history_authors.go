package rpc

import (
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// momentsOverhead is the memory of the moments and the author of a version, in an answer.
const momentsOverhead = 512

// names words by whom and when versions were written, for one caller.
type names struct {
	config  consensus.Config
	moments kv.Moments
	caller  string // its user
	root    bool   // it may learn the names of all users
}

// all reports whether an answer may have names that only root may learn.
func (n *names) all() bool { return n != nil && n.root }

// tell adds author and moments to a version.
func (n *names) tell(v *quoratepb.KeyVersion, by *kv.Author) {
	after, before := n.moments.Of(kv.Revision(v.GetModRevision()))
	v.Author, v.After, v.Before = n.author(by), n.moment(after), n.moment(before)
}

// tellDeletion adds author and moments to the deletion of a key, if it was deleted.
func (n *names) tellDeletion(one *quoratepb.DeletedKey, by *kv.Author) {
	if one.GetDeletedRevision() == 0 {
		return
	}
	after, before := n.moments.Of(kv.Revision(one.GetDeletedRevision()))
	one.Author, one.After, one.Before = n.author(by), n.moment(after), n.moment(before)
}

// tellChange adds author and moments to a change.
func (n *names) tellChange(one *quoratepb.KeyChange, by *kv.Author) {
	after, before := n.moments.Of(kv.Revision(one.GetModRevision()))
	one.Author, one.After, one.Before = n.author(by), n.moment(after), n.moment(before)
}

func (n *names) author(by *kv.Author) *quoratepb.Author {
	if by == nil {
		return nil
	}
	a := &quoratepb.Author{LeaseExpired: by.Expired}
	if by.Client {
		a.ClientId = by.Member
	} else {
		a.MemberId, a.Member = by.Member, n.member(by.Member)
	}
	switch {
	case by.User == "":
	case n.root, by.User == n.caller, by.Cut && strings.HasPrefix(n.caller, by.User):
		a.User, a.UserCut = strings.ToValidUTF8(by.User, "\uFFFD"), by.Cut
	default:
		a.UserHidden = true
	}
	return a
}

func (n *names) member(id uint64) string {
	m, _ := n.config.Member(consensus.MemberID(id))
	return strings.ToValidUTF8(m.Name, "\uFFFD")
}

func (n *names) moment(m *kv.Moment) *quoratepb.Moment {
	if m == nil {
		return nil
	}
	return &quoratepb.Moment{UnixMs: m.Time, MemberId: m.Member, Member: n.member(m.Member), Revision: int64(m.Seen)}
}
