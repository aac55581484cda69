package members

import (
	"embed"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Page returns the page. With a member in its query it shows that one.
func Page() page.Page {
	return page.Page{
		Path: "/members", Name: "Members", About: "Who votes, how far each member is, and how many may fail.",
		Templates: templates,
		Title: func(r *page.Request) string {
			if r.Query.Get("member") == "" {
				return ""
			}
			return "Member"
		},
		Sections: []page.Section{
			{ID: "members-list", Title: "Members", Live: true, Wide: true, Template: "members-list", Load: ofAll(list),
				Command: page.Is("member", "list")},
			{ID: "failures", Title: "If these fail", Live: true, Template: "failures", Load: ofAll(failures),
				Command: page.Is("member", "list")},
			{ID: "matrix", Title: "Round trips between members", Live: true, Template: "matrix", Load: ofAll(matrix),
				Command: page.Is("doctor", "--through-member", "-o", "json")},
			{ID: "member", Live: true, Wide: true, Template: "member", Load: ofOne(head), Command: page.Is("member", "list")},
			{ID: "member-disk", Title: "Disk and store", Live: true, Template: "facts", Load: ofOne(disk),
				Command: page.Is("doctor", "--through-member", "-o", "json")},
			{ID: "member-process", Title: "Process and memory", Live: true, Template: "process", Load: ofOne(process)},
			{ID: "member-certificates", Title: "Certificates", Wide: true, Template: "certificates", Load: ofOne(certificates)},
			{ID: "member-links", Title: "Links to the others", Live: true, Wide: true, Template: "links", Load: ofOne(links)},
		},
	}
}
