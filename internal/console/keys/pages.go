package keys

import (
	"embed"
	"io/fs"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Pages returns the pages. The first one is in the navigation; links of it lead to the others.
func Pages() []page.Page {
	long := new(longList)
	list := []page.Page{
		{Path: "/keys", Name: "Keys", About: "What the store has, as a tree. It is read when you ask, and not by itself.",
			Sections: []page.Section{
				{ID: "keys-find", Wide: true, Template: "keys-find", Load: find},
				{ID: "keys-list", Title: "Keys", Wide: true, Template: "keys-list", Load: list, Command: listCommand},
			}},
		{Path: "/keys/key", Name: "Key", About: "One key, its value and its versions.",
			Sections: []page.Section{
				{ID: "key-value", Wide: true, Template: "keys-value", Load: show, Command: showCommand},
				{ID: "key-lease", Title: "Lease", Wide: true, Live: true, Template: "keys-lease", Load: showLease},
				{ID: "key-versions", Title: "Versions", Wide: true, Template: "keys-versions", Load: recent},
			},
			Files: []page.File{{Path: "/keys/value", Load: save}}},
		{Path: "/keys/versions", Name: "Versions of a key",
			About: "What each revision made of a key, and the difference between two.",
			Sections: []page.Section{
				{ID: "versions-difference", Title: "Difference", Wide: true, Template: "keys-difference", Load: difference},
				{ID: "versions-list", Title: "Versions", Wide: true, Template: "keys-versions", Load: versions},
			}},
		{Path: "/keys/changes", Name: "Changes of keys",
			About: "Who created, changed and deleted keys with a prefix, as far as the history is kept.",
			Sections: []page.Section{{ID: "changes-list", Title: "Changes", Wide: true, Template: "keys-changes",
				Load: changes, Command: changesCommand}}},
		{Path: "/keys/deleted", Name: "Deleted keys",
			About: "Keys that are gone, and can still be read in the history that is kept.",
			Sections: []page.Section{{ID: "deleted-list", Title: "Deleted keys", Wide: true, Template: "keys-deleted",
				Load: deleted, Command: deletedCommand}}},
		{Path: "/keys/undelete", Name: "Undelete", About: "What would be written, before anything is.",
			Sections: []page.Section{{ID: "undelete-plan", Title: "Preview", Wide: true, Template: "keys-undelete",
				Load: preview, Command: undeleteCommand}},
			Actions: []page.Action{{Path: "/keys/undelete", Do: undeleteAction}}},
		{Path: "/keys/watch", Name: "Watch keys", About: "Changes of the keys below a prefix, as they come.",
			Sections: []page.Section{
				{ID: "watch-ask", Wide: true, Template: "keys-watch-ask", Load: askWatch},
				{ID: "watch-events", Title: "Changes", Wide: true, Live: true, Template: "keys-watch", Load: watch,
					Command: watchCommand}}},
		{Path: "/keys/leases", Name: "Leases", About: "Leases and how long they last; the keys of a lease go with it.",
			Sections: []page.Section{{ID: "leases-list", Title: "Leases", Wide: true, Live: true, Template: "keys-leases",
				Load: long.leases, Command: page.Is("lease", "list")}}},
		{Path: "/keys/lease", Name: "Lease", About: "One lease, and the keys that end with it.",
			Sections: []page.Section{
				{ID: "lease-ttl", Title: "Time to live", Wide: true, Live: true, Template: "keys-lease", Load: oneLease},
				{ID: "lease-keys", Title: "Keys", Wide: true, Template: "keys-lease-keys", Load: leaseKeys,
					Command: leaseCommand}},
			Actions: []page.Action{{Path: "/keys/lease", Do: revoke}}},
		{Path: "/keys/new", Name: "New key", About: "Writes a key that does not exist.",
			Sections: []page.Section{{ID: "new-form", Title: "New key", Wide: true, Template: "keys-new", Load: newForm}},
			Actions:  []page.Action{{Path: "/keys/new", Do: create}}},
		{Path: "/keys/edit", Name: "Edit a key", About: "Writes a value if nobody wrote the key meanwhile.",
			Sections: []page.Section{{ID: "edit-form", Wide: true, Template: "keys-edit", Load: editForm}},
			Actions:  []page.Action{{Path: "/keys/edit", Do: edit}}},
		{Path: "/keys/delete", Name: "Delete a key", About: "Deletes a key if nobody wrote it meanwhile.",
			Sections: []page.Section{{ID: "delete-form", Title: "Delete", Wide: true, Template: "keys-delete", Load: deleteForm,
				Command: deleteCommand}},
			Actions: []page.Action{{Path: "/keys/delete", Do: deleteAction}}},
	}
	for i := range list {
		list[i].Templates = fs.FS(templates)
		list[i].Hidden = i > 0
	}
	return list
}

func listCommand(r *page.Request) string {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return ""
	}
	return command(r, prefix, "get", "--prefix", "--keys-only", "--serializable")
}
