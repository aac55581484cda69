// Package upgrade has the commands of `quorate upgrade`: when what a new build brings begins to be used, in which order to
// restart members, and whether a new file may be started.
//
// The commands decide nothing about levels: the cluster does (package member/raising). They ask its native services Upgrade and
// Membership, and, in check, the new file itself.
//
// Invariants:
//  1. Nothing is changed by status, plan and check. A hold or a new policy is undone by another policy; finalize is not undone,
//     says so, and asks first.
//  2. The new file is started only with `version`, in an empty environment, for a bounded time, and a bounded part of its
//     output is read.
package upgrade
