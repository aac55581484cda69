package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/sim/dice"
)

// An unknown peer is a process that is no member and can reach the peer ports. It knows what members report of themselves:
// storage ids, starts and epochs. It cannot read the messages of others, and is at no address that the configuration has for a
// member. Its claims alone must change nothing at all: it draws from a stream of its own, so that a world with strangers goes
// exactly as the same world without them.

const nobody = "is nobody, and repeats what a member says of itself"

// strikeStrangers makes an unknown peer contact a member.
func (w *World) strikeStrangers() {
	rng, up := w.run.lies, w.cluster.up()
	if len(up) == 0 {
		return
	}
	at := up[rng.IntN(len(up))]
	if at.guard == nil || at.guard.Joins() || w.run.Now() < at.frozen {
		return // a process that joins knows no member that it could ask
	}
	said := credentials{claim: w.cluster.lie(rng, at), impostor: nobody}
	w.run.current = at
	if dice.Chance(rng, 0.5) {
		w.run.struck("strangers", fmt.Sprintf("greet %d as %v", at.slot, &said.claim))
		at.greeted(&said.claim)
		return
	}
	w.run.struck("strangers", fmt.Sprintf("open a stream to %d as %v", at.slot, &said.claim))
	told := lies(rng, at, said.claim.Member)
	if !w.cluster.net.welcome(at, nil, &said, identity.Said, false) {
		return
	}
	if heard, refusal := at.guard.Admit(&said.claim, identity.Said, told); refusal == nil && len(heard) > 0 {
		w.run.suite.Report("strangers", fmt.Sprintf("member %v hears %+v of a process which %s, as %v", at.id, heard[0],
			nobody, &said.claim))
	}
}

// lie draws the identity that an unknown peer claims.
func (c *cluster) lie(rng *rand.Rand, at *host) identity.Claim {
	config := at.proc.Node.Replica().InForce().Config
	known := slices.DeleteFunc(config.IDs(), func(id consensus.MemberID) bool { return id == at.id })
	claim := identity.Claim{Cluster: clusterID, Epoch: at.claim.Epoch, Address: "http://192.0.2.1:2380"}
	if len(known) == 0 {
		return claim // it claims no member
	}
	claim.Member = known[rng.IntN(len(known))]
	if dice.Chance(rng, 0.25) { // a removed member, or one that was never added
		claim.Member = consensus.MemberID(1 + rng.IntN(16))
		if claim.Member == at.id {
			claim.Member = 1 << 40
		}
	}
	if h := c.hosts[claim.Member]; h != nil {
		claim.Storage, claim.Life = h.claim.Storage, h.claim.Life // exactly
	}
	switch rng.IntN(8) {
	case 0: // the last start
	case 1, 2:
		claim.Life = consensus.Life{Boots: claim.Life.Boots + 1, Nonce: rng.Uint64()}
	case 3:
		claim.Life = consensus.Life{Boots: 1 << 60, Nonce: rng.Uint64()}
	case 4:
		claim.Storage = storageOf(claim.Member, 1+rng.IntN(otherDisk-1))
	case 5:
		claim.Cluster++
	case 6, 7:
		claim.Epoch.Number += uint64(1 + rng.IntN(3))
		claim.Life = consensus.Life{Boots: claim.Life.Boots + 1, Nonce: rng.Uint64()}
	}
	return claim
}

// lies are the messages that an unknown peer sends under a member's id.
func lies(rng *rand.Rand, to *host, from consensus.MemberID) []consensus.Message {
	s := to.proc.Node.Replica().Status()
	m := consensus.Message{From: from, To: to.id, Term: s.Term + consensus.Term(rng.IntN(3))}
	m.Kind = dice.Pick(rng, consensus.MsgVoteReply, consensus.MsgPreVoteReply, consensus.MsgAppendReply,
		consensus.MsgHeartbeatReply, consensus.MsgVote, consensus.MsgHeartbeat, consensus.MsgTimeoutNow, consensus.MsgPreVote,
		consensus.MsgRemoved)
	m.Match, m.Commit = consensus.Position{Index: s.LastIndex, Term: s.Term}, s.LastIndex
	return []consensus.Message{m}
}
