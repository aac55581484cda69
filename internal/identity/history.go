package identity

import "github.com/quorate/quorate/internal/consensus"

// Two clusters may have one id: restored twice from one file, or founded twice, with the same token. They have two histories,
// and members of one bind their namesakes in the other to other data directories.

// Obey reports whether a member must believe a peer that its data directory is of no use to it. own is what it claims, applied
// the configuration that it has applied.
//
// A member is bound once, by a committed entry. So if applied binds it to its own directory, a peer that names another one has
// another history, or an entry that will not commit, and knows less of this one. A member that has lost its disk has no such
// configuration: a new directory is bound by an entry of the cluster that takes it in, under an id that was not bound before.
func Obey(reason Reason, own *Claim, applied *consensus.Config, rules Rules) bool {
	return reason != LostDisk || rules.ObeyOtherHistory || applied.BindingOf(own.Member, own.Storage) != consensus.BindingOwn
}
