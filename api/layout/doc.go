// Package layout is what every page of the site shares: the frame with its
// styles and scripts, the one way in which text of a repository becomes HTML,
// and the form of a request for a page.
//
// A page joins in three steps:
//
//  1. A function with the signature of [Handler] reads its Visit and answers
//     with one of Visit's methods:
//
//     func (p *Pages) hello(ctx context.Context, v *layout.Visit) error {
//     return v.Show(layout.Head{Title: "Hello"}, helloTemplate, data)
//     }
//
//  2. The template is parsed by [Parse], which brings the functions text, name
//     and plain. Whatever a repository, a user or a code host wrote goes
//     through one of them or through html/template's own escape.
//
//  3. The route stands in a table: that of package web, or a row of package
//     api made with its method page.
//
// An error that a handler returns becomes an error page with the status that
// the API has for it; who is not signed in is led to /login. A page that
// changes something takes POST and calls nothing before [Visit.SameSite].
//
// The policy [CSP] forbids scripts and styles inside a page: scripts are modules
// below static/js, named in Head.Scripts, styles stand in static/css: site.css is of every
// page, read.css of those that one reads. Who comes from elsewhere gets them inside the
// first page, see [Visit.Policy].
package layout
