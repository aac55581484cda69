package sim

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/dice"
)

// seals stand for age, which draws random bytes of its own: what is encrypted here is the same in each run of a seed.
type seals struct {
	number uint64 // of the last content
}

// lock returns what encrypts to the recipients of a policy.
func (s *seals) lock(p *kv.BackupPolicy) (*backup.Lock, error) {
	return &backup.Lock{Secret: backup.Secret([]byte(p.Secret)), Seal: func(content []byte) []byte {
		s.number++
		sealed := binary.LittleEndian.AppendUint64([]byte(p.Recipients+"\n"), s.number)
		stream, sum := cipherOf(sealed)
		body := bytes.Clone(content)
		stream.XORKeyStream(body, body)
		sum.Write(body)
		return append(sum.Sum(sealed), body...)
	}}, nil
}

type hasher interface {
	Write([]byte) (int, error)
	Sum([]byte) []byte
}

// cipherOf is what encrypts and sums behind a head.
func cipherOf(head []byte) (cipher.Stream, hasher) {
	key := sha256.Sum256(head)
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the length is a constant
	}
	return cipher.NewCTR(block, make([]byte, aes.BlockSize)), hmac.New(sha256.New, key[:])
}

// opener returns what decrypts with the identities of some recipients.
func opener(identities ...string) backup.Opener {
	return func(sealed []byte, most int64) ([]byte, error) {
		recipients, _, found := bytes.Cut(sealed, []byte("\n"))
		head := len(recipients) + 1 + 8
		if !found || len(sealed) < head+sha256.Size {
			return nil, errors.New("it is cut")
		}
		mine := false
		for _, one := range identities {
			mine = mine || strings.Contains(" "+string(recipients)+" ", " "+one+" ")
		}
		if !mine {
			return nil, backup.ErrRecipients
		}
		stream, sum := cipherOf(sealed[:head])
		body := bytes.Clone(sealed[head+sha256.Size:])
		sum.Write(body)
		if !bytes.Equal(sum.Sum(nil), sealed[head:head+sha256.Size]) || int64(len(body)) > most {
			return nil, errors.New("it has other bytes")
		}
		stream.XORKeyStream(body, body)
		return body, nil
	}
}

// allRecipients are those that policies draw from.
var allRecipients = []string{"ann", "bob", "ann bob"}

// drawRecipients draws the recipients of a policy that follows another one: a place that had an encrypted backup has none in
// the clear.
func (b *buckets) drawRecipients(p, has *kv.BackupPolicy) {
	at := b.at(p.Place)
	switch {
	case !b.seals:
		return
	case p.Place == has.Place && has.Recipients != "" && dice.Chance(b.rules, 0.6):
		p.Recipients = has.Recipients
	case at.sealed || dice.Chance(b.rules, 0.6):
		p.Recipients = dice.Pick(b.rules, allRecipients...)
	}
	at.sealed = at.sealed || p.Recipients != ""
	p.TakeSecrets(has, p.Place == has.Place, func() (secret [kv.BackupSecretBytes]byte) {
		for i := range secret {
			secret[i] = byte(b.rules.Uint32())
		}
		return secret
	})
}

// judgeRecipients wants what is put encrypted to the recipients that its entries are for.
func (b *bucket) judgeRecipients(name string, content []byte) {
	report := func(format string, args ...any) {
		b.run.suite.Report("backup", fmt.Sprintf("%s was put to %s: %s", name, b.url, fmt.Sprintf(format, args...)))
	}
	var set backup.Set
	var last uint64
	if n, err := backup.ParseSegment(name); err == nil {
		set, last = n.Set, uint64(n.End.Index)
	} else if n, err := backup.ParseBase(name); err == nil {
		set, last = n.Set, uint64(n.Index)
	} else {
		return
	}
	policies := b.run.suite.Backups().Set()
	of := -1
	for i := range policies {
		p := &policies[i]
		secret := backup.Secret{}
		copy(secret[:], p.Secret)
		if p.Place == b.url && secret.Set() == set {
			of = i
		}
	}
	if of < 0 {
		report("no policy has these recipients")
		return
	}
	if of+1 < len(policies) && policies[of+1].Secret != policies[of].Secret && last >= uint64(policies[of+1].Index) {
		report("entry %d is for the recipients of the policy of entry %d", last, policies[of+1].Index)
	}
	recipients := policies[of].Recipients
	if recipients != "" && strings.HasPrefix(name, backup.LogPrefix) && !bytes.Contains(content, []byte(recipients+"\n")) {
		report("it is not encrypted to %s", recipients)
	}
}

// readAll decrypts whatever is at the places.
var readAll = opener("ann", "bob")
