package doctor

import (
	"strings"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
)

// longestKey bounds the name of a key, which a plug-in may have chosen.
const longestKey = 100

// keys are those of encrypted data directories.
func (p *patient) keys() (all []Finding) {
	var encrypted, plain []string
	for _, s := range p.answered() {
		keys, one := s.o.GetKeys(), []string{s.name()}
		if keys == nil {
			plain = append(plain, s.name())
			continue
		}
		encrypted = append(encrypted, s.name())
		by, current := printable.Text(keys.GetWrappedBy(), longestKey), printable.Text(keys.GetCurrent(), longestKey)
		if keys.GetTrouble() != "" {
			all = append(all, found(KeyUnavailable, NextFailure, one, "quorate key status --endpoints MEMBER",
				"%s runs, and could not open its encrypted data at its next start: %s; do not stop it: repair that, or give "+
					"it another key in --encryption-key-file and run `quorate key rotate`, which wraps anew the keys that "+
					"the process has", s.name(), printable.Text(keys.GetTrouble(), longestTrouble)))
		}
		if keys.GetAsked() && current != "" && current != by {
			all = append(all, found(KeyNotRotated, Advice, one, "quorate key rotate --endpoints MEMBER", "the keys of "+
				"%s are wrapped by key %s of the %s, and %s is the one to wrap with now: rotate before the former is removed, "+
				"or the data are lost", s.name(), by, providerWords(keys.GetProvider()), current))
		}
	}
	if len(encrypted) > 0 && len(plain) > 0 {
		do, their := "do not encrypt their data directories", "their disks"
		if len(plain) == 1 {
			do, their = "does not encrypt its data directory", "its disk"
		}
		all = append(all, found(PartlyEncrypted, Advice, plain, "quorate member reset NAME --dry-run", "%s %s, and %s %s: "+
			"keys and values are in the clear on %s; docs/encryption.md has the steps", strings.Join(plain, ", "), do,
			strings.Join(encrypted, ", "), plural.Word(len(encrypted), "does", "do"), their))
	}
	return all
}

func providerWords(name string) string {
	if name == "kms" {
		return "key service"
	}
	return "key file"
}
