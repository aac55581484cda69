package backup

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/ctl/command"
)

// recipients are the flags that say to whom a backup is encrypted.
type recipients struct {
	words []string
	file  string
	clear bool
}

func (r *recipients) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&r.words, "recipient", nil,
		"public key of age, age1…, to which the backup is encrypted; may be given several times; none: as before")
	flags.StringVar(&r.file, "recipients-file", "", "file with such keys, one a line")
	flags.BoolVar(&r.clear, "in-the-clear", false, "encrypt no more: only with the URL of another place")
}

// read returns the recipients that were given. Nothing is sent that is not a public key: it may be a secret one.
func (r *recipients) read() ([]string, error) {
	words := r.words
	if r.file != "" {
		content, err := readSmall(r.file)
		if err != nil {
			return nil, command.Usagef("--recipients-file: %w", err)
		}
		found := seal.ReadRecipients(content)
		if len(found) == 0 {
			return nil, command.Usagef("--recipients-file %s: it has no line with a recipient", r.file)
		}
		words = append(words[:len(words):len(words)], found...)
	}
	switch {
	case len(words) > 0 && r.clear:
		return nil, command.Usagef("choose recipients, or --in-the-clear")
	case len(words) == 0:
		return nil, nil
	}
	parsed, err := seal.ParseRecipients(words)
	if errors.Is(err, seal.ErrFIPS) { // the members decide
		return words, nil
	}
	if err != nil {
		return nil, command.Usagef("--recipient: %w", err)
	}
	return parsed.Words(), nil
}

// maxRecipientsFile bounds a file of recipients, in bytes.
const maxRecipientsFile = 64 << 10

func readSmall(name string) (text string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err := io.ReadAll(io.LimitReader(file, maxRecipientsFile+1))
	if err == nil && len(content) > maxRecipientsFile {
		err = fmt.Errorf("%s has more than %d bytes: it is no file of recipients", name, maxRecipientsFile)
	}
	return string(content), err
}

// encrypted says to whom a backup is encrypted.
func encrypted(b *quoratepb.BackupStatus) string {
	if n := len(b.GetRecipients()); n > 0 {
		return "it is encrypted to " + plural.Of(n, "recipient") + ": the place shows sizes and times"
	}
	return "it is not encrypted: who can read the place can read all keys"
}
