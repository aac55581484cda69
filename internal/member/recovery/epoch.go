package recovery

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/wal"
)

// A recovery begins the next epoch of the cluster. Members of different epochs exchange nothing but their claims. So
// members that were dropped, and a second survivor that was recovered on its own, are not taken for members of this
// cluster.

// nextEpoch makes the epoch after all known ones: that of the survivor and those of the directories that were compared.
// That includes a learner that AdvanceLearner gave a new epoch before a crash.
func (p *Plan) nextEpoch(s *Survivor, others []*Survivor) {
	p.Before = s.Identity.Epoch
	p.Epoch = consensus.Epoch{Number: s.Identity.Epoch.Number}
	for _, other := range others {
		p.Epoch.Number = max(p.Epoch.Number, other.Identity.Epoch.Number)
	}
	p.Epoch.Number++
	if s.nonce != nil {
		binary.BigEndian.PutUint64(p.Epoch.Recovery[:], s.nonce())
		return
	}
	_, _ = rand.Read(p.Epoch.Recovery[:]) // never fails
}

// sameEpoch returns those of the epoch of s. Two separate recoveries may have made the same configuration id, so the
// records of another epoch do not count.
func (s *Survivor) sameEpoch(others []*Survivor) []*Survivor {
	return slices.DeleteFunc(slices.Clone(others), func(o *Survivor) bool { return o.Identity.Epoch != s.Identity.Epoch })
}

// drops notes the addresses of the members that p gives up.
func (p *Plan) drops(s *Survivor) {
	known := slices.Clone(s.base.Config.Members)
	for i := range s.changes {
		known = append(known, s.changes[i].Config.Members...)
	}
	known = append(known, s.Dialled()...)
	slices.Reverse(known) // the last configuration is right
	for _, m := range known {
		had := slices.ContainsFunc(p.dropped, func(d consensus.Member) bool { return d.ID == m.ID })
		if had || p.Config.Contains(m.ID) {
			continue
		}
		m.Name = s.NameOf(m.ID)
		p.dropped = append(p.dropped, m)
	}
}

// AdvanceLearner writes the epoch of p to the directory of a learner that stays, which was inspected as s. It must be
// called before Write. After a crash in between no member talks to the learner until the recovery is repeated.
func (p *Plan) AdvanceLearner(options datadir.Options, s *Survivor) error {
	log, found, err := wal.Open(options.WAL())
	if err != nil {
		return err
	}
	if last := found.Last(); found.Identity != s.Identity || (!s.ahead && last != s.Last) {
		err = fmt.Errorf("recovery: %s changed while it was looked at: try again", options.Dir)
		return errors.Join(err, log.Close())
	}
	err = log.Append(wal.Batch{Epoch: &p.Epoch})
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("recovery: write the epoch to the log of a learner: %w", err)
	}
	return nil
}
