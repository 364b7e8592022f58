// Package layout has what all pages of the site share: the frame with its
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
//  3. The route is in a table: that of package web, or a row of package
//     api made with its method page.
//
// An error that a handler returns becomes an error page with the status that
// the API has for it; guests are sent to /login. A page that
// changes something takes POST and calls [Visit.SameSite] first.
//
// The policy [CSP] forbids scripts and styles inside a page: scripts are modules
// below static/js, named in Head.Scripts. Styles are in static/css: site.css for every
// page, read.css for pages with text to read. Visitors from other sites get them inside the
// first page, see [Visit.Policy].
package layout
