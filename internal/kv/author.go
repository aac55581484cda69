package kv

// Author says by whom a change was made. From feature level 2 on the store keeps it with each change.
type Author struct {
	// Member is the member that proposed the command, or, if Client is set, the random id of a native client. Of an expired
	// lease it is the leader that found it so.
	Member uint64
	Client bool
	// User is the user of the command; empty: there were no users, or no client asked. Cut says that it is longer than
	// MostAuthorUser bytes, and that these are its first ones.
	User string
	Cut  bool
	// Expired says that the change deleted a key because the time of its lease was over.
	Expired bool
}

// MostAuthorUser is how many bytes of a user's name are kept with a change.
const MostAuthorUser = 128
