package encryption

import (
	"embed"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Page returns the page.
func Page() page.Page {
	return page.Page{
		Path: path, Name: "Encryption",
		About:     "Whether what members have on disk is encrypted, and with which keys.",
		Templates: templates, Title: func(*page.Request) string { return "Encryption at rest" },
		Sections: []page.Section{
			{ID: "encryption-members", Wide: true, Live: true, Template: "encryption-members", Load: members},
			{ID: "encryption-keys", Wide: true, Template: "encryption-keys", Load: keys,
				Command: page.Is("key", "status")},
		},
		Actions: []page.Action{{Path: rotatePath, Do: rotate}},
	}
}
