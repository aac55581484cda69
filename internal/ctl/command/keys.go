package command

import (
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/storage/keysource"
)

// KeyFlags defines the flags that open encrypted data directories.
func KeyFlags(flags *pflag.FlagSet, source *keysource.Source) {
	flags.StringVar(&source.KeyFile, keysource.KeyFileFlag, "", keysource.KeyFileHelp)
	flags.StringVar(&source.KMS, keysource.KMSFlag, "", keysource.KMSHelp)
}
