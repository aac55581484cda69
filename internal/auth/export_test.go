package auth

// PerItem is the share that is counted for each user, role, granted role and permission.
const PerItem = perItem

// Rows are all rows of a State.
func Rows(s *State) []Row {
	rows := []Row{s.headRow()}
	for _, name := range s.Users() {
		rows = append(rows, Row{userRow(name), s.users[name].encode()})
	}
	for _, name := range s.Roles() {
		rows = append(rows, Row{roleRow(name), s.roles[name].encode()})
	}
	for _, t := range s.JoinTokens(0) {
		rows = append(rows, Row{tokenRow(t.ID), t.encode()})
	}
	return rows
}
