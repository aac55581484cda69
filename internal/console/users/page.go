package users

import (
	"embed"

	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Page returns the page.
func Page() page.Page {
	return page.Page{
		Path: path, Name: "Users", About: "Users, their roles, and which keys each may read and write.",
		Templates: templates, Title: func(*page.Request) string { return "Users and roles" },
		Sections: []page.Section{
			{ID: "users-state", Title: "Authentication", Template: "users-state", Load: state,
				Command: page.Is("auth", "status")},
			{ID: "users-check", Title: "May a user reach a key?", Template: "users-check", Load: check, Command: checkCommand},
			{ID: "users-list", Title: "Users", Wide: true, Template: "users-list", Load: list,
				Command: page.Is("user", "list")},
			{ID: "users-roles", Title: "Roles", Wide: true, Template: "users-roles", Load: roles,
				Command: page.Is("role", "list")},
			{ID: "users-add", Title: "Add and grant", Wide: true, Template: "users-add", Load: addForms},
		},
		Actions: actions(),
	}
}

// Confirm returns the page that says what an action takes away, and wants the name typed.
func Confirm() page.Page {
	return page.Page{
		Path: path + "/change", Name: "Change a user or role", About: "What this takes away, before it is done.", Hidden: true,
		Templates: templates,
		Sections: []page.Section{
			{ID: "users-confirm", Wide: true, Template: "users-confirm", Load: confirm, Command: confirmCommand},
		},
	}
}
