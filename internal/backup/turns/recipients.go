package turns

import (
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/kv"
)

// secrets are those of a policy's recipients, and of those before them.
func secrets(p *kv.BackupPolicy) (all []backup.Secret) {
	for text := p.Secret + p.Former; len(text) >= kv.BackupSecretBytes; text = text[kv.BackupSecretBytes:] {
		all = append(all, backup.Secret([]byte(text[:kv.BackupSecretBytes])))
	}
	return all
}
