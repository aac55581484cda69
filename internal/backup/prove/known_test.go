package prove_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/prove"
	"github.com/quorate/quorate/internal/storage/objects"
)

// reads says which objects are read.
type reads struct {
	objects.Store
	told func(name string)
}

func (r reads) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	r.told(name)
	return r.Store.Get(ctx, name, offset, length)
}

// Ensure that nothing of a base is read that no member of the cluster made, that such bases are counted, and that a proof which has
// no other one says so.
func TestRun_unknown(t *testing.T) {
	s := ships(t)
	c := s.catalog()
	last := c.Bases[len(c.Bases)-1]
	forged := backuptest.Spoil(t, s.place, c, &last, open)
	own := map[backup.Hash]bool{}
	for i := range c.Bases {
		own[c.Bases[i].Hash] = true
	}
	o := s.options()
	o.Store = reads{s.place, func(name string) {
		if name == forged {
			t.Errorf("%s is read", name)
		}
	}}
	o.Known = func(h backup.Hash) bool { return own[h] }
	p, err := s.prove(o)
	if err != nil || p.Unknown != 1 || len(p.Damaged) > 0 || p.Bases != 1 || p.At != s.heads[len(s.heads)-1] {
		t.Errorf("got %+v, %v", p, err)
	}
	// The first bases are those of whom the cluster has forgotten who made them.
	delete(own, c.Bases[0].Hash)
	if p, err = s.prove(o); err != nil || p.Unknown != 1 {
		t.Errorf("after the first base was forgotten: %+v, %v", p, err)
	}
	clear(own)
	p, err = s.prove(o)
	unknown := (*prove.UnknownError)(nil)
	if !errors.As(err, &unknown) || unknown.Bases != len(c.Bases) || !prove.Verdict(err) {
		t.Errorf("nothing is known: %+v, %v", p, err)
	}
}

// Ensure that an error of Rest ends the replay that is under way, and is what a proof returns.
func TestRun_restEnds(t *testing.T) {
	s := ships(t)
	over := errors.New("over")
	o := s.options()
	rests := 0
	o.Rest = func() error {
		if rests++; rests > 1 {
			return over
		}
		return nil
	}
	if p, err := s.prove(o); !errors.Is(err, over) || prove.Verdict(err) || rests != 2 {
		t.Errorf("got %+v, %v, after %d rests", p, err, rests)
	}
}
