package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/consensus"
)

// set is a set of recipients, for programs.
type set struct {
	Name  string          `json:"name"` // in names of objects
	Bases int             `json:"bases"`
	From  consensus.Index `json:"from_entry"` // of the first base
	// Opens tells whether an identity that was given decrypts the newest base; absent: none was given, or there is no base.
	Opens *bool `json:"opens,omitempty"`
}

// sets are those of the recipients to which the place's bases are encrypted, with which of them the identities open.
func (c *source) sets(ctx context.Context) (list []set, err error) {
	newest := map[backup.Set]*backup.Base{}
	at := map[backup.Set]int{}
	for i := range c.catalog.Bases {
		b := &c.catalog.Bases[i]
		if b.Set == 0 {
			continue
		}
		if newest[b.Set] == nil {
			at[b.Set] = len(list)
			list = append(list, set{Name: fmt.Sprintf("%08x", uint32(b.Set)), From: b.Index})
		}
		newest[b.Set] = b
		list[at[b.Set]].Bases++
	}
	if c.reads == nil {
		return list, nil
	}
	for id, base := range newest {
		opens, err := c.opens(ctx, base)
		if err != nil {
			return nil, c.failed(ctx, err)
		}
		list[at[id]].Opens = &opens
	}
	return list, nil
}

func (c *source) opens(ctx context.Context, base *backup.Base) (bool, error) {
	content, err := fetch.Object(ctx, c.store, base.String(), base.Hash, backup.MaxManifestBytes)
	if err != nil {
		return false, err
	}
	_, err = backup.OpenManifest(&base.BaseName, content, c.reads)
	switch {
	case errors.Is(err, backup.ErrRecipients):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("object %s: %w", base, err)
	}
	return true, nil
}

func (c *source) printSets(sets []set) {
	for _, s := range sets {
		line := fmt.Sprintf("encrypted to the recipients of set %s: %s, from entry %d on", s.Name,
			plural.Of(s.Bases, "base"), s.From)
		switch {
		case s.Opens == nil:
		case *s.Opens:
			line += "; an identity that was given opens them"
		default:
			line += "; no identity that was given opens them"
		}
		fmt.Fprintln(c.streams.Out, line)
	}
}
