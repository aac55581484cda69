package kv

import (
	"encoding/binary"
	"math"

	"github.com/quorate/quorate/internal/auth"
)

// Flags of the credentials of a command.
const (
	byUser   = 1 << 0 // always set: zero credentials are not written
	byMember = 1 << 1
)

func appendChange(dst []byte, c *auth.Change) []byte {
	dst = append(dst, byte(c.Kind), flag(c.NoPassword, 1), byte(c.Permission.Access))
	dst = appendText(dst, c.User)
	dst = appendText(dst, c.Role)
	dst = appendBytes(dst, c.Hash)
	dst = appendBytes(dst, c.Permission.Key)
	dst = appendBytes(dst, c.Permission.End)
	dst = appendBytes(dst, c.Secret)
	if c.Kind.OfJoinToken() {
		dst = appendToken(dst, c)
	}
	return dst
}

// appendToken writes the fields that only changes of join tokens have. UsedBy is a field of none.
func appendToken(dst []byte, c *auth.Change) []byte {
	var t auth.JoinToken
	if c.Token != nil {
		t = *c.Token
	}
	dst = appendText(dst, t.ID)
	dst = append(dst, t.Hash[:]...)
	dst = binary.AppendUvarint(dst, uint64(t.Expires))
	dst = binary.AppendUvarint(dst, uint64(t.Uses))
	dst = appendText(dst, t.Owner)
	dst = append(dst, c.Newcomer[:]...)
	return binary.AppendUvarint(dst, uint64(c.Now))
}

func (r *reader) token(c *auth.Change) {
	t := &auth.JoinToken{ID: string(r.bytes()), Hash: r.hash()}
	expires, uses := r.uvarint(), r.uvarint()
	t.Owner = string(r.bytes())
	c.Token, c.Newcomer = t, r.hash()
	now := r.uvarint()
	if expires > math.MaxInt64 || uses > auth.MaxTokenUses || now > math.MaxInt64 {
		r.fail()
		return
	}
	t.Expires, t.Uses, c.Now = int64(expires), int(uses), int64(now)
}

func (r *reader) change() *auth.Change {
	c := &auth.Change{Kind: auth.Kind(r.byte()), NoPassword: r.flags(1) != 0}
	c.Permission.Access = auth.Access(r.byte())
	switch {
	case c.Kind == 0:
		r.fail()
	case !knownChange(c):
		r.unknown()
	}
	c.User, c.Role, c.Hash = string(r.bytes()), string(r.bytes()), r.bytes()
	c.Permission.Key, c.Permission.End, c.Secret = r.bytes(), r.bytes(), r.bytes()
	if c.Kind.OfJoinToken() {
		r.token(c)
	}
	return c
}

func (r *reader) credentials() auth.Credentials {
	flags := r.flags(byUser | byMember)
	by := auth.Credentials{Member: flags&byMember != 0, User: string(r.bytes()), Revision: r.uvarint()}
	if flags&byUser == 0 || by.IsZero() {
		r.fail() // Append would not write it
	}
	return by
}

func appendCredentials(dst []byte, by auth.Credentials) []byte {
	dst = appendText(append(dst, byUser|flag(by.Member, byMember)), by.User)
	return binary.AppendUvarint(dst, by.Revision)
}
