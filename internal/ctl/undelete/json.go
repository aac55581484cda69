package undelete

import (
	"unicode/utf8"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/undelete"
)

// planJSON is a plan as programs get it.
type planJSON struct {
	Revision int64        `json:"revision"`       // of the store
	First    int64        `json:"first_revision"` // the oldest one that can be read
	At       int64        `json:"at,omitempty"`
	AtMost   int64        `json:"at_most,omitempty"` // of --at with a time: no later revision was there
	Keys     []itemJSON   `json:"keys"`
	Bytes    int64        `json:"bytes"`
	Leased   int          `json:"leased"`
	LeftOut  int          `json:"left_out"` // keys that had a lease
	Existing existingJSON `json:"existing"`
	More     *keyJSON     `json:"more_from,omitempty"`
}

// keyJSON is a key: as text, or, if it is none, in base64 under another name.
type keyJSON struct {
	Key      string `json:"key,omitempty"`
	KeyBytes []byte `json:"key_base64,omitempty"`
}

type itemJSON struct {
	keyJSON
	Deleted int64  `json:"deleted_revision,omitempty"`
	Read    int64  `json:"read_revision"`
	Mod     int64  `json:"mod_revision"`
	Size    int64  `json:"size"`
	Lease   string `json:"lease,omitempty"`
}

type existingJSON struct {
	Same   int        `json:"same"`
	Other  int        `json:"other"`
	Listed []keptJSON `json:"listed"` // the first of them
}

type keptJSON struct {
	keyJSON
	Mod  int64 `json:"mod_revision"`
	Same bool  `json:"same"`
}

// resultJSON is what was done.
type resultJSON struct {
	Restored int          `json:"restored"`
	Bytes    int64        `json:"bytes"`
	Revision int64        `json:"revision,omitempty"` // of the last write
	Came     existingJSON `json:"came"`
	Gone     []keyJSON    `json:"compacted"`
	TooLarge []keyJSON    `json:"too_large"`
}

func keyOutput(key []byte) keyJSON {
	if utf8.Valid(key) {
		return keyJSON{Key: string(key)}
	}
	return keyJSON{KeyBytes: key}
}

func (w *work) planOutput(p *undelete.Plan) planJSON {
	out := planJSON{Revision: p.Revision, First: p.First, At: p.At, AtMost: w.told.GetAtMost(), Keys: []itemJSON{},
		Bytes: p.Bytes, Leased: p.Leased, LeftOut: p.LeftOut,
		Existing: existingOutput(&p.Kept)}
	for _, one := range p.Items {
		row := itemJSON{keyJSON: keyOutput(one.Key), Deleted: one.Deleted, Read: one.Read, Mod: one.ModRevision, Size: one.Size}
		if one.Lease != 0 {
			row.Lease = command.HexID(uint64(one.Lease))
		}
		out.Keys = append(out.Keys, row)
	}
	if p.More != nil {
		more := keyOutput(p.More)
		out.More = &more
	}
	return out
}

func existingOutput(e *undelete.Existing) existingJSON {
	out := existingJSON{Same: e.Same, Other: e.Other, Listed: []keptJSON{}}
	for _, one := range e.Listed {
		out.Listed = append(out.Listed, keptJSON{keyOutput(one.Key), one.ModRevision, one.Same})
	}
	return out
}

func resultOutput(r *undelete.Result) resultJSON {
	out := resultJSON{Restored: r.Restored, Bytes: r.Bytes, Revision: r.Revision, Came: existingOutput(&r.Came),
		Gone: []keyJSON{}, TooLarge: []keyJSON{}}
	for _, one := range r.Gone {
		out.Gone = append(out.Gone, keyOutput(one.Key))
	}
	for _, one := range r.TooLarge {
		out.TooLarge = append(out.TooLarge, keyOutput(one.Key))
	}
	return out
}
