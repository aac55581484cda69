package auth

import (
	"crypto/subtle"
	"maps"
	"slices"
)

// JoinTokens returns the tokens that have not expired at now, in Unix milliseconds, by ID.
func (s *State) JoinTokens(now int64) []*JoinToken {
	var live []*JoinToken
	for _, id := range slices.Sorted(maps.Keys(s.tokens)) {
		if t := s.tokens[id]; t.Expires > now {
			live = append(live, t)
		}
	}
	return live
}

// Admits reports whether a token admits a newcomer. It is not proof: two may ask at once, and the change JoinTokenUse decides.
func (s *State) Admits(id string, hash, newcomer [32]byte, now int64) error {
	t := s.tokens[id]
	switch {
	case t == nil || subtle.ConstantTimeCompare(t.Hash[:], hash[:]) == 0:
		return ErrTokenInvalid
	case t.Owner != "" && s.enabled && !s.HasRole(t.Owner, RootRole):
		return ErrTokenInvalid // a user that may not add members any more must not do it by a token from before
	case t.Expires <= now:
		return ErrTokenExpired
	case !t.usedBy(newcomer) && len(t.UsedBy) >= t.Uses:
		return ErrTokenUsed
	}
	return nil
}

// Admitted reports whether a token has admitted a newcomer already. Whether it still does, Admits says.
func (s *State) Admitted(id string, newcomer [32]byte) bool {
	t := s.tokens[id]
	return t != nil && t.usedBy(newcomer)
}

// changeTokens carries out a change of join tokens. The revision stays: no token of a user is the less valid for it.
func (d *draft) changeTokens(c *Change) (changed bool, err error) {
	t := c.Token
	if t == nil || !goodTokenID(t.ID) {
		return false, ErrTokenInvalid
	}
	d.dropExpired(c.Now)
	known := d.State.tokens[t.ID]
	switch {
	case c.Kind == JoinTokenAdd:
		switch {
		case known != nil:
			return false, ErrTokenExists
		case t.Uses < 1 || t.Uses > MaxTokenUses || t.Expires <= c.Now || len(t.UsedBy) > 0 || !goodName(t.Owner):
			return false, ErrTokenInvalid
		case len(d.State.tokens) >= MaxJoinTokens:
			return false, ErrTooManyTokens
		}
		added := *t
		d.putToken(&added)
		return true, nil
	case known == nil:
		return false, ErrTokenInvalid
	case c.Kind == JoinTokenDelete:
		d.dropToken(known)
		return true, nil
	}
	if err := d.Admits(t.ID, t.Hash, c.Newcomer, c.Now); err != nil || known.usedBy(c.Newcomer) {
		return false, err
	}
	used := *known
	used.UsedBy = append(slices.Clone(known.UsedBy), c.Newcomer)
	d.putToken(&used)
	return true, nil
}

// dropOwnerless ends the tokens that were made while no client had to log in: any client may have made them.
func (d *draft) dropOwnerless() {
	for _, id := range slices.Sorted(maps.Keys(d.State.tokens)) {
		if t := d.State.tokens[id]; t.Owner == "" {
			d.dropToken(t)
		}
	}
}

func (d *draft) dropExpired(now int64) {
	for _, id := range slices.Sorted(maps.Keys(d.State.tokens)) {
		if t := d.State.tokens[id]; t.Expires <= now {
			d.dropToken(t)
		}
	}
}

func (d *draft) ownTokens() {
	if !d.tokens {
		d.State.tokens, d.tokens = maps.Clone(d.State.tokens), true
	}
}

func (d *draft) putToken(t *JoinToken) {
	d.ownTokens()
	if before := d.State.tokens[t.ID]; before != nil {
		d.bytes -= before.size()
	}
	d.bytes += t.size()
	d.State.tokens[t.ID] = t
	d.rows = append(d.rows, Row{Key: tokenRow(t.ID), Value: t.encode()})
}

func (d *draft) dropToken(t *JoinToken) {
	d.ownTokens()
	d.bytes -= t.size()
	delete(d.State.tokens, t.ID)
	d.rows = append(d.rows, Row{Key: tokenRow(t.ID)})
}
