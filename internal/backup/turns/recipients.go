package turns

import (
	"errors"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/kv"
)

var errNoLock = errors.New("this member cannot encrypt the backup")

// lockOf returns what encrypts to the recipients of a policy; nil if it has none. This member may be unable to, though the one
// that took the policy was not.
func (m *Machine) lockOf(p *kv.BackupPolicy) (*backup.Lock, error) {
	switch {
	case p.Recipients == "":
		return nil, nil
	case m.config.Lock == nil:
		return nil, errNoLock
	}
	return m.config.Lock(p)
}

// secrets are those of a policy's recipients, and of those before them.
func secrets(p *kv.BackupPolicy) (all []backup.Secret) {
	for text := p.Secret + p.Former; len(text) >= kv.BackupSecretBytes; text = text[kv.BackupSecretBytes:] {
		all = append(all, backup.Secret([]byte(text[:kv.BackupSecretBytes])))
	}
	return all
}
