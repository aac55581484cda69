package member

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/storage/wal"
)

// A recovery begins the next epoch of the cluster: members of different epochs exchange nothing but who they are. So those
// that were dropped, and a second survivor that was recovered apart, can be told from the members of this cluster.

// nextEpoch makes the epoch after all that are known: those of the survivor and of the directories that were compared. A
// learner whose directory got a new epoch before a crash counts, too, so that a repeated recovery goes beyond it.
func (r *Recovery) nextEpoch(s *Survivor, others []*Survivor) {
	r.Before = s.Identity.Epoch
	r.Epoch = consensus.Epoch{Number: s.Identity.Epoch.Number}
	for _, other := range others {
		r.Epoch.Number = max(r.Epoch.Number, other.Identity.Epoch.Number)
	}
	r.Epoch.Number++
	if s.nonce != nil {
		binary.BigEndian.PutUint64(r.Epoch.Recovery[:], s.nonce())
		return
	}
	_, _ = rand.Read(r.Epoch.Recovery[:]) // never fails
}

// sameEpoch keeps those that may hold records under the configuration of s: two recoveries apart may have made the same
// configuration id.
func (s *Survivor) sameEpoch(others []*Survivor) []*Survivor {
	return slices.DeleteFunc(slices.Clone(others), func(o *Survivor) bool { return o.Identity.Epoch != s.Identity.Epoch })
}

// drops notes where the members were that r gives up.
func (r *Recovery) drops(s *Survivor) {
	known := slices.Clone(s.base.Config.Members)
	for i := range s.changes {
		known = append(known, s.changes[i].Config.Members...)
	}
	slices.Reverse(known) // the last configuration is right
	for _, m := range known {
		had := slices.ContainsFunc(r.dropped, func(d consensus.Member) bool { return d.ID == m.ID })
		if had || r.Config.Contains(m.ID) {
			continue
		}
		m.Name = s.NameOf(m.ID)
		r.dropped = append(r.dropped, m)
	}
}

// AdvanceLearner writes the epoch of r to the directory of a learner that stays, which was inspected as s. It must be done
// before Write: a crash in between leaves a learner that nobody talks to, and the same command, given again, repairs it.
func (r *Recovery) AdvanceLearner(options datadir.Options, s *Survivor) error {
	log, found, err := wal.Open(options.WAL())
	if err != nil {
		return err
	}
	if last := found.Last(); found.Identity != s.Identity || (!s.ahead && last != s.Last) {
		err = fmt.Errorf("member: %s changed while it was looked at: try again", options.Dir)
		return errors.Join(err, log.Close())
	}
	err = log.Append(wal.Batch{Epoch: &r.Epoch})
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("member: write the epoch to the log of a learner: %w", err)
	}
	return nil
}
