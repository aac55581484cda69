package auth

import "maps"

// draft is the next State under construction.
type draft struct {
	State
	rows   []Row
	users  bool // State.users is the draft's own
	roles  bool // State.roles is
	tokens bool // State.tokens is
}

func (d *draft) putUser(u *User) {
	d.ownUsers()
	if old, ok := d.State.users[u.Name]; ok {
		d.bytes -= old.size()
	}
	d.bytes += u.size()
	d.State.users[u.Name] = u
	d.rows = append(d.rows, Row{userRow(u.Name), u.encode()})
}

// putRole does not visit the users of the role: a Check finds what their roles permit by name.
func (d *draft) putRole(r *Role) {
	r.makeSets()
	d.ownRoles()
	if old, ok := d.State.roles[r.Name]; ok {
		d.bytes -= old.size()
	}
	d.bytes += r.size()
	d.State.roles[r.Name] = r
	d.rows = append(d.rows, Row{roleRow(r.Name), r.encode()})
}

func (d *draft) ownUsers() {
	if !d.users {
		d.State.users, d.users = maps.Clone(d.State.users), true
	}
}

func (d *draft) ownRoles() {
	if !d.roles {
		d.State.roles, d.roles = maps.Clone(d.State.roles), true
	}
}
