/* SPDX-License-Identifier: Apache-2.0 */
#include "write.h"

struct error *report_write_html(
        const struct findings *f, const struct evidence *e, const struct report_meta *meta, FILE *out)
{
	return report_write_markdown(f, e, meta, out);
}
