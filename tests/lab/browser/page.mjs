/*
 * The lab's page in a browser: what is asked of it by clicks and keys it does, nothing leaves it, and axe-core finds no
 * fault, in light and dark, on a screen and on a phone. One browser serves all checks, since to start it is most of the
 * time. What was wrong in a check is in the file of its name in DIRECTORY; an empty file: nothing.
 *
 * Usage: node page.mjs DIRECTORY     where page.html is; playwright-core and axe-core are in node_modules beside this
 */
import assert from 'node:assert/strict';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import axe from 'axe-core';
import {chromium} from 'playwright-core';

const directory = process.argv[2];
const url = pathToFileURL(join(directory, 'page.html')).href;
const wide = {width: 1280, height: 900}, phone = {width: 360, height: 740};

/* A page that fails the check by whatever it says on the console, throws, or asks for. */
async function opened(context, place = '') {
  const page = await context.newPage();
  const complaints = [];
  page.on('console', m => complaints.push(`console: ${m.text()}`));
  page.on('pageerror', e => complaints.push(`error: ${e.message}`));
  page.on('dialog', d => complaints.push(`dialog: ${d.message()}`));
  page.on('request', r => r.url().split('#')[0] === url || complaints.push(`request: ${r.url()}`));
  page.quiet = () => assert.deepEqual(complaints, []);
  await page.goto(url + place);
  return page;
}

const shown = page => page.locator('#matrix tr[data-p]:visible').count();
const sheet = page => page.locator('dialog[open]');
const cell = (page, id, control) => page.locator(`#matrix tr:has(th b:text-is("${id}")) td[data-c="${control}"]`);
const focused = page => page.evaluate(() => {
  const e = document.activeElement, tr = e.closest('tr[data-p]');
  return [tr ? tr.querySelector('b').textContent : '', e.dataset.c || '', e.tagName].join(' ');
});

async function faults(page, part) {
  const {violations} = await page.evaluate(part => globalThis.axe.run(part, {resultTypes: ['violations'],
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}), part);
  return violations.map(v => `${v.id}: ${v.help}\n  ` +
    v.nodes.slice(0, 3).map(n => `${n.target}: ${n.failureSummary.split('\n')[1]}`).join('\n  '));
}

async function sideways(page) {
  return page.evaluate(() => {
    const root = document.documentElement;
    return root.scrollWidth - root.clientWidth;
  });
}

const checks = {
  /* The page's policy lets no script in that is not its own, so axe comes past it. */
  async axe_finds_nothing(browser) {
    for (const [colorScheme, viewport] of [['light', wide], ['dark', wide], ['light', phone], ['dark', phone]]) {
      const context = await browser.newContext({colorScheme, viewport, reducedMotion: 'reduce', bypassCSP: true});
      const page = await opened(context);
      await page.evaluate(axe.source);
      const look = async (part, what) =>
        assert.deepEqual(await faults(page, part), [], `${colorScheme}, ${viewport.width}, ${what}`);
      await look('html', 'the page');
      for (const id of ['FS8', 'XS1']) {
        await page.locator(`#matrix tr:has(th b:text-is("${id}")) th`).click();
        await look('dialog', id);
        await page.keyboard.press('Escape');
      }
      await cell(page, 'FS8', 'caps').click();
      await look('dialog', 'a cell');
      page.quiet();
      await context.close();
    }
  },

  async no_text_of_a_probe_is_markup_and_nothing_leaves(browser) {
    const page = await opened(await browser.newContext({viewport: wide}), '#XS1/cgroupns');
    assert.match(await sheet(page).innerText(), /<\/script><img src=x onerror="window.pwned=1">/);
    await page.getByRole('button', {name: 'All about XS1'}).click();
    assert.match(await sheet(page).innerText(), /As in|Echoes/);
    await page.keyboard.press('Escape');
    await page.locator('#matrix thead th[data-c="cpu"]').click();
    assert.match(await sheet(page).innerText(), /others stop before it: <\/script>/);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator('img, iframe, link, object, script[src]').count(), 0);
    /* nor could it: the policy refuses what is not in it */
    const refused = await page.evaluate(async () => {
      const seen = [];
      document.addEventListener('securitypolicyviolation', e => seen.push(e.violatedDirective));
      document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.pwned = 2'}),
        Object.assign(document.createElement('img'), {src: 'https://example.invalid/x'}));
      await fetch('https://example.invalid/').catch(() => {});
      await new Promise(done => setTimeout(done, 50));
      return [window.pwned, ...seen.sort()];
    });
    assert.deepEqual(refused, [undefined, 'connect-src', 'img-src', 'script-src-elem']);
  },

  async a_cell_opens_by_click_and_by_key(browser) {
    const page = await opened(await browser.newContext({viewport: wide, reducedMotion: 'reduce'}));
    await cell(page, 'PR2', 'pid').click();
    assert.match(await sheet(page).innerText(), /pid alone does not stop it, but together with others it does: w/);
    await page.keyboard.press('Escape');
    await cell(page, 'FS1', 'mount').hover();
    assert.match(await page.locator('#tip').innerText(), /^FS1 × mount: mount alone stops it/);
    await cell(page, 'FS1', 'mount').click();
    const text = await sheet(page).innerText();
    for (const fact of ['stopped too', 'Everything on', 'Without mount', 'mount alone', 'Everything off', 'ENOENT'])
      assert.ok(text.includes(fact), `${fact} is not in\n${text}`);
    assert.ok(page.url().endsWith('#FS1/mount'));
    await page.keyboard.press('Escape');
    assert.equal(await sheet(page).count(), 0);
    assert.equal(await focused(page), 'FS1 mount TD'); /* where one was */

    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(page), 'FS2 mount TD');
    await page.keyboard.press('ArrowRight');
    assert.equal(await focused(page), 'FS2 proc TD');
    await page.keyboard.press('Enter');
    assert.match(await sheet(page).innerText(), /FS2 × proc[^]*through[^]*does nothing against it/);
    await page.getByRole('button', {name: 'Close'}).click();
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    assert.match(await sheet(page).innerText(), /FS2 · files[^]*mount or landlock or caps \+ identity/);
    await page.keyboard.press('Escape');
    await page.keyboard.press('PageUp');
    await page.keyboard.press('ArrowRight');
    assert.equal(await focused(page), ' memory TH');
    await page.keyboard.press('Enter');
    assert.match(await sheet(page).innerText(), /control[^]*memory[^]*88\.4 µs[^]*RE1/);
    await page.getByRole('button', {name: 'Show its probes'}).click();
    assert.equal(await sheet(page).count(), 0);
    assert.equal(await shown(page), 2);

    /* nor does the head, which stands still, cover what has the focus */
    await page.click('#clear');
    await cell(page, 'LE3', 'uts').click();
    await page.keyboard.press('Escape');
    for (const key of ['PageUp', 'PageUp', 'ArrowUp', 'ArrowUp']) {
      const before = await focused(page);
      await page.keyboard.press(key);
      assert.notEqual(await focused(page), before);
      assert.ok(await page.evaluate(() => {
        const {left, top, width, height} = document.activeElement.getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2) === document.activeElement;
      }), `after ${key}: ${await focused(page)}`);
    }

    /* one stop of the tab key for the whole of the grid */
    await page.locator('#clear').focus();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    assert.equal(await page.locator('#matrix [tabindex]').count(), 1);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => !!document.activeElement.closest('#matrix')), false);
    page.quiet();
  },

  async filters_filter_and_sorts_sort(browser) {
    const page = await opened(await browser.newContext({viewport: wide}));
    const all = await shown(page);
    const first = () => page.locator('#matrix tr[data-p]:visible th b').first().innerText();
    const status = page.locator('#shown');
    assert.match(await status.innerText(), new RegExp(`^All ${all} probes`));
    await page.fill('#find', 'cve-2022');
    assert.equal(await shown(page), 3);
    await page.fill('#find', 'nothing is like this');
    assert.match(await status.innerText(), /No probe fits/);
    assert.equal(await page.locator('#matrix .family:visible').count(), 0);
    await page.click('#clear');
    assert.equal(await shown(page), all);
    await page.selectOption('#family', 'sockets');
    assert.equal(await shown(page), 3);
    await page.selectOption('#control', 'net');
    assert.equal(await shown(page), 2);
    await page.selectOption('#word', 'stopped');
    assert.equal(await shown(page), 1);
    assert.match(await status.innerText(), /1 of \d+ probes: net is “stopped” there/);
    await page.click('#clear');
    await page.selectOption('#word', 'together');
    assert.equal(await shown(page), 1);
    await page.click('#clear');
    await page.selectOption('#verdict', 'void');
    assert.equal(await first(), 'LE9');
    await page.click('#clear');
    await page.selectOption('#sort', 'most');
    assert.equal(await first(), 'NS3');
    assert.equal(await page.locator('#matrix .family:visible').count(), 0);
    await page.selectOption('#columns', 'buys');
    assert.equal(await page.locator('#matrix thead th').nth(1).innerText(), 'seccomp');
    assert.equal(await page.locator('#matrix tr:has(b:text-is("SY1")) td').first().innerText(), 'stopped');
    await page.selectOption('#columns', 'price');
    assert.equal(await page.locator('#matrix thead th').nth(1).innerText(), 'net');
    await page.click('#clear');
    assert.equal(await first(), 'FS1');
    assert.equal(await page.locator('#matrix thead th').nth(1).innerText(), 'memory');
    const others = page.locator('.peers tbody tr:visible');
    assert.equal(await others.count(), all);
    await page.getByLabel('Only what differs').check();
    assert.equal(await others.count(), 4);
    page.quiet();
  },

  async in_print_all_is_there(browser) {
    const viewport = {width: 1040, height: 720};
    const page = await opened(await browser.newContext({viewport, colorScheme: 'dark'}));
    const all = await shown(page);
    await page.selectOption('#family', 'calls');
    assert.ok(await shown(page) < all);
    await page.emulateMedia({media: 'print'});
    assert.equal(await shown(page), all);
    for (const gone of ['.tools', 'nav', '#tip']) assert.equal(await page.locator(gone).isVisible(), false, gone);
    assert.deepEqual(await page.evaluate(() => [
      getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor,
      getComputedStyle(document.querySelector('#matrix thead th')).position]),
    ['rgb(0, 0, 0)', 'rgb(255, 255, 255)', 'static']);
    assert.ok(await sideways(page) <= 0);
    assert.ok((await page.pdf({preferCSSPageSize: true})).length > 20000);
  },

  async a_phone_does_not_scroll_sideways(browser) {
    const options = {viewport: phone, hasTouch: true, isMobile: true, reducedMotion: 'reduce'};
    const page = await opened(await browser.newContext(options));
    assert.ok(await sideways(page) <= 0, `by ${await sideways(page)} px`);
    /* as narrow as it is, no text leaves the page or is smaller than one can read */
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('main *, header *')].filter(e => {
      const box = e.getBoundingClientRect(), own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
      const size = parseFloat(getComputedStyle(e).fontSize);
      return own && box.width > 0 && (box.right > innerWidth + 1 || (size > 0 && size < 12));
    }).map(e => e.outerHTML.slice(0, 120))), []);
    assert.equal(await cell(page, 'FS1', 'net').isVisible(), false); /* does nothing */
    await cell(page, 'FS1', 'mount').tap();
    assert.match(await sheet(page).innerText(), /FS1 × mount/);
    assert.ok(await sheet(page).evaluate(d => d.scrollWidth <= d.clientWidth));
    await page.getByRole('button', {name: 'Close'}).tap();
    assert.equal(await sheet(page).count(), 0);
    page.quiet();
  },

  async without_scripts_it_can_be_read(browser) {
    const page = await opened(await browser.newContext({viewport: wide, javaScriptEnabled: false}));
    assert.equal(await page.locator('.tools, .hint, dialog, #tip').filter({visible: true}).count(), 0);
    const row = page.getByRole('row').filter({hasText: 'io_uring_setup'}).first();
    assert.equal(await row.getByRole('cell', {name: 'stopped', exact: true}).count(), 1);
    assert.equal(await page.getByRole('columnheader', {name: 'seccomp'}).count(), 1);
    assert.ok(await page.getByText('landlock', {exact: true}).count() > 0);
    assert.ok(await page.locator('#peers').getByText('bwrap loads a filter only where').first().isVisible());
  },
};

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium', env: {...process.env, HOME: directory},
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
});
async function run(name) {
  const problem = await checks[name](browser).then(() => '', e => e.stack);
  writeFileSync(join(directory, name), problem);
}
/* axe mostly computes, the others mostly wait */
await Promise.all([run('axe_finds_nothing'), (async () => {
  for (const name of Object.keys(checks).slice(1)) await run(name);
})()]);
await browser.close();
