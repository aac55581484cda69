package kv

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/auth"
)

// Flags of who a command comes from.
const (
	byUser   = 1 << 0 // always set: nobody is not written
	byMember = 1 << 1
)

func appendChange(dst []byte, c *auth.Change) []byte {
	dst = append(dst, byte(c.Kind), flag(c.NoPassword, 1), byte(c.Permission.Access))
	dst = appendText(dst, c.User)
	dst = appendText(dst, c.Role)
	dst = appendBytes(dst, c.Hash)
	dst = appendBytes(dst, c.Permission.Key)
	dst = appendBytes(dst, c.Permission.End)
	return appendBytes(dst, c.Secret)
}

func (r *reader) change() *auth.Change {
	c := &auth.Change{Kind: auth.Kind(r.byte()), NoPassword: r.flags(1) != 0}
	c.Permission.Access = auth.Access(r.byte())
	c.User, c.Role, c.Hash = string(r.bytes()), string(r.bytes()), r.bytes()
	c.Permission.Key, c.Permission.End, c.Secret = r.bytes(), r.bytes(), r.bytes()
	if !c.Kind.Valid() || c.Permission.Access > auth.ReadWrite {
		r.fail()
	}
	return c
}

func (r *reader) credentials() auth.Credentials {
	flags := r.flags(byUser | byMember)
	by := auth.Credentials{Member: flags&byMember != 0, User: string(r.bytes()), Revision: r.uvarint()}
	if flags&byUser == 0 || by.IsZero() {
		r.fail() // it would not be written
	}
	return by
}

func appendCredentials(dst []byte, by auth.Credentials) []byte {
	dst = appendText(append(dst, byUser|flag(by.Member, byMember)), by.User)
	return binary.AppendUvarint(dst, by.Revision)
}
