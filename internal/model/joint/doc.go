// Package joint is a small model of one change of several voters at once, by each protocol that supports one (ADR 0008): terms,
// votes, logs, commits, and the entries of the change, without the fast path, reads and clients. It is so small that all of its
// states are visited: within its bounds a search that ends is a proof.
//
// Bounds: one change, from one fixed set of voters to another; one leader of term 1, which all members follow; a given number
// of candidacies after it, in terms up to their number plus one; logs of at most six entries. Not bounded are loss, delay,
// reordering and duplication (an append is any prefix of the log that the leader of a term ever had, at any later time), and
// crashes, after which a member knows of no commit. Any member may learn at any time which entries have committed, if its log
// has them: votes, heartbeats and answers carry less.
//
// Laws: election safety, leader completeness, one entry for each committed index, and decided changes stay decided: a change by
// joint-early, or activate, is decided when its first entry has committed.
//
// A Search takes a Protocol and a Way back: when a leader may abort a change. ADR 0060 has the results. With SwitchOff it asks,
// in every state of a change by activate or an experiment like it, whether the remaining members can elect a leader: see ADR
// 0063.
//
// Nothing here may be called concurrently. Source: Ongaro, "Consensus: Bridging Theory and Practice" (2014), 4.3.
package joint
