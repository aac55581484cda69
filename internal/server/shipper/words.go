package shipper

import (
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/kv"
)

// cut makes a text of a place fit into a report.
func cut(text string) string {
	text = printable.Text(text, kv.MaxBackupTroubleBytes/4)
	for len(text) > kv.MaxBackupTroubleBytes {
		text = text[:len(text)/2]
	}
	return text
}
