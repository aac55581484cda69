package backup_test

import (
	"fmt"
	"math/rand"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// segment returns a segment of n entries after a point, with fields of many lengths.
func segment(rng *rand.Rand, after backup.Head, n int) *backup.Segment {
	s := &backup.Segment{Cluster: 0xfedcba9876543210, Epoch: 2, Member: 7, Since: 1, Before: after.Sum,
		RevisionBefore: after.Revision}
	rng.Read(s.Predecessor[:])
	index, at, revision := after.Index, after.Time, after.Revision
	for range n {
		index++
		at += int64(rng.Intn(3) * rng.Intn(1000))
		revision += kv.Revision(rng.Intn(2))
		payload := make([]byte, rng.Intn(200))
		rng.Read(payload[:len(payload)/2])
		s.Items = append(s.Items, backup.Item{
			Entry: consensus.Entry{Index: index, Term: 3, Kind: consensus.EntryCommand, Payload: payload, Proposer: 2,
				Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 2, Number: 9}, Sequence: uint64(index)}},
			Time: at, Revision: revision, Sum: rng.Uint64(),
		})
	}
	return s
}

func manifest(rng *rand.Rand, at backup.Head) *backup.Manifest {
	m := &backup.Manifest{Cluster: 0xfedcba9876543210, Member: 7, Index: at.Index, Term: 3, Revision: at.Revision, Since: 1,
		Sum: backup.Hex(at.Sum), Level: 1, Build: "1.1.0", Time: at.Time}
	for i := range 1 + rng.Intn(4) {
		m.Files = append(m.Files, backup.File{Name: fmt.Sprintf("%06d.sst", i), Size: int64(rng.Intn(1000)),
			Hash: backup.HashOf([]byte(fmt.Sprint(rng.Int())))})
	}
	return m
}
